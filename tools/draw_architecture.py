#!/usr/bin/env python3
"""The picture of docs/architecture.md: layers on the left, the memory of one session on the right."""

LAYERS = (
    ("cli   python", "faces: public headers only"),
    ("runtime", "sessions, contexts, executor"),
    ("kernels", "operator rows, one folder a family"),
    ("plan", "passes, order, lifetime, offsets"),
    ("model", "ONNX read in place"),
    ("tensor", "types, shapes, values"),
    ("memory", "page sources, tree, arenas, leases"),
    ("base", "status, threads, checked sizes"),
)
# name, note, depth in the tree
NODES = (
    ("environment", "root, or child of yours", 0),
    ("shared/model.onnx", "mapping, packed weights", 1),
    ("session", "limit is checked here", 1),
    ("weights", "what cannot be shared", 2),
    ("execution", "slab + class arena, per context", 2),
    ("io", "outputs: exported as leases", 2),
    ("plan", "structural and sized plans", 2),
)
STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #1c2733 }
.note { font-size: 11px; fill: #5b6b7b }
.head { font-weight: 600; font-size: 14px }
.layer { fill: #eef4fb; stroke: #7f9dbd }
.node { fill: #eef8f0; stroke: #7fae8a }
.lease { fill: #fdf3e4; stroke: #d1a45c }
.line { stroke: #8a99a8; fill: none }
@media (prefers-color-scheme: dark) {
text { fill: #e3eaf2 } .note { fill: #9fb0c0 }
.layer { fill: #1d2a3a } .node { fill: #1b2e22 } .lease { fill: #35291a }
}
</style>
"""


def box(x, y, width, height, kind, name, note):
    return (f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="5"/>\n'
            f'<text x="{x + 12}" y="{y + 18}">{name}</text>\n'
            f'<text class="note" x="{x + 12}" y="{y + 33}">{note}</text>\n')


def layers(x, y):
    parts = [f'<text class="head" x="{x}" y="{y - 14}">Layers: a file includes its own and lower '
             'ones</text>\n']
    for row, (name, note) in enumerate(LAYERS):
        parts.append(box(x, y + row * 46, 290, 42, "layer", name, note))
    return "".join(parts)


def tree(x, y):
    parts = [f'<text class="head" x="{x}" y="{y - 14}">Memory: every byte in one tree</text>\n']
    corner = {}
    for row, (name, note, depth) in enumerate(NODES):
        left, top = x + depth * 34, y + row * 46
        parts.append(box(left, top, 250, 42, "node", name, note))
        corner[depth] = (left, top)
        if depth > 0:
            up_x, up_y = corner[depth - 1]
            parts.append(f'<path class="line" d="M{up_x + 16} {up_y + 42} V{top + 21} H{left}"/>\n')
    return "".join(parts)


def picture():
    lease_y = 50 + len(NODES) * 46
    return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 730 440" role="img" '
            'aria-label="Layers and memory of Tenure">\n' + STYLE + layers(20, 50) + tree(390, 50)
            + box(458, lease_y, 250, 42, "lease", "lease", "a result outlives everything above")
            + f'<path class="line" stroke-dasharray="4 3" d="M708 {50 + 5 * 46 + 21} H722 '
            f'V{lease_y + 21} H708"/>\n</svg>\n')


if __name__ == "__main__":
    print(picture(), end="")
