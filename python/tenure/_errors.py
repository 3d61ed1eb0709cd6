"""Errors raised by the Python side, with the attributes of those raised by the library."""

from ._tenure import InvalidArgumentError, NotSupportedError


class UnknownOptionError(InvalidArgumentError, TypeError):
    """A keyword that names no option."""


def _fill(error, code):
    error.code = code
    error.detail = {"message": str(error)}
    return error


def invalid_argument(message):
    return _fill(InvalidArgumentError(message), "INVALID_ARGUMENT")


def not_supported(message):
    return _fill(NotSupportedError(message), "UNSUPPORTED")


def unknown_option(message):
    return _fill(UnknownOptionError(message), "INVALID_ARGUMENT")
