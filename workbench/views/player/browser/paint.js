// Paint the marks of layers on a canvas, and their samples in the legend.
//
// Lines are stroked a few at a time: a path of ten thousand segments takes a hundred times as long as many short paths.

const SEGMENTS_A_PATH = 24
const SHAPES_A_PATH = 48
const DOT_GAP = 10 // px between two dots on a track
const MOST_LABELS = 80 // in the visible section; more are not readable

class Brush {
  constructor(context) {
    this.context = context
    this.waiting = 0
  }

  // Begin lines of one look.
  strokes(colour, width, { alpha = 1, dash = [], cap = "butt" } = {}) {
    const { context } = this
    context.globalAlpha = alpha
    context.strokeStyle = colour
    context.lineWidth = width
    context.lineCap = cap
    context.setLineDash(dash)
    context.beginPath()
    this.waiting = 0
  }

  segment(x0, y0, x1, y1) {
    this.context.moveTo(x0, y0)
    this.context.lineTo(x1, y1)
    if (++this.waiting == SEGMENTS_A_PATH) this.flushStrokes()
  }

  flushStrokes() {
    if (!this.waiting) return
    this.context.stroke()
    this.context.beginPath()
    this.waiting = 0
  }

  // Begin shapes of one look: filled, outlined, or both.
  shapes(fill, line, width, { alpha = 1, dash = [] } = {}) {
    const { context } = this
    context.globalAlpha = alpha
    this.fill = fill
    this.line = line
    if (fill) context.fillStyle = fill
    if (line) context.strokeStyle = line
    context.lineWidth = width
    context.setLineDash(dash)
    context.beginPath()
    this.waiting = 0
  }

  shape(marker, x, y, radius) {
    const { context } = this
    if (marker == "square") context.rect(x - 0.9 * radius, y - 0.9 * radius, 1.8 * radius, 1.8 * radius)
    else if (marker == "triangle") this.polygon([x, y - 1.1 * radius, x + radius, y + 0.8 * radius, x - radius, y + 0.8 * radius])
    else if (marker == "diamond") this.polygon([x, y - radius, x + radius, y, x, y + radius, x - radius, y])
    else if (marker == "x") {
      const reach = 0.8 * radius
      context.moveTo(x - reach, y - reach)
      context.lineTo(x + reach, y + reach)
      context.moveTo(x + reach, y - reach)
      context.lineTo(x - reach, y + reach)
    } else {
      context.moveTo(x + radius, y)
      context.arc(x, y, radius, 0, 2 * Math.PI)
    }
    if (++this.waiting == SHAPES_A_PATH) this.flushShapes()
  }

  polygon(points) {
    this.context.moveTo(points[0], points[1])
    for (let i = 2; i < points.length; i += 2) this.context.lineTo(points[i], points[i + 1])
    this.context.closePath()
  }

  flushShapes() {
    if (!this.waiting) return
    if (this.fill) this.context.fill()
    if (this.line) this.context.stroke()
    this.context.beginPath()
    this.waiting = 0
  }
}

// Return value of `kindOf` -> rows with that value, so that each style is set only once.
function grouped(rows, kindOf) {
  const groups = new Map()
  for (const row of rows) {
    const kind = kindOf(row)
    const group = groups.get(kind)
    if (group) group.push(row)
    else groups.set(kind, [row])
  }
  return groups
}

function lookOf(layer, row) {
  return layer.looks[layer.table.look ? layer.table.look[row] : 0]
}

// Marks between a node and its peer.
const BETWEEN = new Set(["line", "half", "arrow", "packet", "loss"])

function weightOf(layer, row) {
  return layer.table.weight ? layer.table.weight[row] : 0
}

// Return the colour of a row: that of its weight if the layer has a scale, else that of its look.
function colourOf(layer, look, row, isDark) {
  if (!layer.scale) return look.colour[isDark]
  const shades = layer.scale.colours[isDark]
  return shades[Math.round(clamp(weightOf(layer, row), 0, 1) * (shades.length - 1))]
}

function lengthOf(look, node) {
  return Math.max(look.size * node, look.least)
}

// A painter for each mark. `view` has px, py (the positions of nodes), node (their diameter in px), isDark and tick.

const PAINTERS = {
  line(brush, view, layer, look, rows) {
    for (const [colour, some] of grouped(rows, (row) => colourOf(layer, look, row, view.isDark))) {
      const dash = look.is_dashed ? [5, 4] : []
      brush.strokes(colour, lengthOf(look, view.node), { alpha: look.alpha, dash, cap: look.is_dashed ? "butt" : "round" })
      for (const row of some) brush.segment(...view.ends(layer, row))
      brush.flushStrokes()
    }
  },

  half(brush, view, layer, look, rows) {
    for (const [colour, some] of grouped(rows, (row) => colourOf(layer, look, row, view.isDark))) {
      brush.strokes(colour, lengthOf(look, view.node), { alpha: look.alpha })
      for (const row of some) {
        const [x0, y0, x1, y1] = view.ends(layer, row)
        brush.segment(x0, y0, (x0 + x1) / 2, (y0 + y1) / 2)
      }
      brush.flushStrokes()
    }
  },

  arrow(brush, view, layer, look, rows) {
    const clear = 0.62 * view.node
    const isDense = view.node < 7
    for (const [key, some] of grouped(rows, (row) => `${colourOf(layer, look, row, view.isDark)} ${weightOf(layer, row)}`)) {
      const [colour, weight] = [key.split(" ")[0], layer.scale ? 0 : Number(key.split(" ")[1])]
      const width = (isDense ? 0.7 : 1) * lengthOf(look, view.node) * (1 + 0.55 * weight)
      const heads = []
      brush.strokes(colour, width, { alpha: look.alpha, cap: "round" })
      for (const row of some) {
        const line = aside(view.ends(layer, row), clear, look.lane * view.node)
        brush.segment(...line)
        heads.push(line)
      }
      brush.flushStrokes()
      if (!look.head) continue
      const size = Math.max(0.6 * view.node, 4, 2.2 * width)
      brush.shapes(colour, null, 0, { alpha: look.alpha })
      for (const [x0, y0, x1, y1] of heads) paintHead(brush, x0, y0, x1, y1, look.head, size)
      brush.flushShapes()
    }
  },

  disc(brush, view, layer, look, rows) {
    for (const [colour, some] of grouped(rows, (row) => colourOf(layer, look, row, view.isDark))) {
      brush.shapes(colour, look.width > 0 ? view.outline : null, look.width, { alpha: look.alpha })
      for (const row of some) paintAt(brush, view, layer, row, look, lengthOf(look, view.node) / 2)
      brush.flushShapes()
    }
  },

  ring(brush, view, layer, look, rows) {
    for (const [colour, some] of grouped(rows, (row) => colourOf(layer, look, row, view.isDark))) {
      brush.shapes(null, colour, look.width, { alpha: look.alpha, dash: look.is_dashed ? [4, 3] : [] })
      for (const row of some) paintAt(brush, view, layer, row, look, lengthOf(look, view.node) / 2)
      brush.flushShapes()
    }
  },

  cross(brush, view, layer, look, rows) {
    brush.shapes(null, look.colour[view.isDark], look.width, { alpha: look.alpha })
    for (const row of rows) paintAt(brush, view, layer, row, { marker: "x" }, lengthOf(look, view.node) / 2)
    brush.flushShapes()
  },

  // A broadcast is a ring that widens around its sender and fades.
  wave(brush, view, layer, look, rows) {
    const { from, until, node } = layer.table
    const widest = lengthOf(look, view.node)
    for (const row of rows) {
      const share = (view.tick - from[row]) / (until[row] - from[row])
      const radius = (view.node + (widest - view.node) * Math.sqrt(share)) / 2
      brush.shapes(null, look.colour[view.isDark], look.width, { alpha: look.alpha * (0.95 - 0.8 * share) })
      brush.shape("circle", view.px[node[row]], view.py[node[row]], radius)
      brush.flushShapes()
    }
  },

  // A unicast frame is a dot between two nodes, with a tail that shows where it comes from.
  packet(brush, view, layer, look, rows) {
    const radius = lengthOf(look, view.node) / 2
    const dots = []
    brush.strokes(look.colour[view.isDark], 0.65 * radius, { alpha: 0.7 * look.alpha, cap: "round" })
    for (const row of rows) {
      const [x, y, x0, y0] = view.packetAt(layer, row)
      brush.segment(x0, y0, x, y)
      dots.push([x, y])
    }
    brush.flushStrokes()
    brush.shapes(look.colour[view.isDark], look.alpha == 1 ? view.ground : null, 1.3, { alpha: look.alpha })
    for (const [x, y] of dots) brush.shape("circle", x, y, radius)
    brush.flushShapes()
  },

  // A cross on the link where a unicast frame was lost; smaller and fainter for a broadcast.
  loss(brush, view, layer, look, rows) {
    const size = lengthOf(look, view.node) / 2
    for (const [isUnicast, some] of grouped(rows, (row) => (weightOf(layer, row) ? 1 : 0))) {
      brush.shapes(null, look.colour[view.isDark], isUnicast ? 2.4 : 1.6, { alpha: isUnicast ? 1 : 0.35 })
      for (const row of some) {
        const [nx, ny, x, y] = view.ends(layer, row)
        brush.shape("x", x + view.lostAt * (nx - x), y + view.lostAt * (ny - y), size * (isUnicast ? 1 : 0.45))
      }
      brush.flushShapes()
    }
  },

  // The track of a moving node: a line behind it, a dashed line ahead of it, and a dot for each waypoint.
  track(brush, view, layer, look, rows) {
    const colour = look.colour[view.isDark]
    const parts = rows.map((row) => view.trackOf(layer.table.node[row]))
    for (const which of [0, 1]) {
      brush.strokes(colour, look.least, { alpha: look.alpha, dash: which ? [3, 4] : [] })
      for (const part of parts) {
        const points = part[which]
        for (let i = 1; i < points.length; i++) brush.segment(points[i - 1][1], points[i - 1][2], points[i][1], points[i][2])
      }
      brush.flushStrokes()
    }
    brush.shapes(colour, null, 0, { alpha: look.alpha })
    for (const part of parts.flat()) for (const [, x, y] of spaced(part.slice(1, -1))) brush.shape("circle", x, y, 2)
    brush.flushShapes()
  },

  // A large disc, for example the reach of a jammer, with a diamond in its center.
  area(brush, view, layer, look, rows) {
    const { x_m: xs, y_m: ys, radius_m: radii } = layer.table
    const colour = look.colour[view.isDark]
    for (const row of rows) {
      const [x, y] = view.toPx(xs ? xs[row] : 0, ys ? ys[row] : 0)
      const radius = view.px_m * (radii ? radii[row] : 0)
      for (const [fill, line, alpha] of [[colour, null, look.alpha], [null, colour, 0.6]]) {
        brush.shapes(fill, line, 1, { alpha, dash: [4, 4] })
        brush.shape("circle", x, y, radius)
        brush.flushShapes()
      }
      brush.shapes(colour, view.ground, look.width)
      brush.shape("diamond", x, y, look.least / 2)
      brush.flushShapes()
    }
  },

  label(brush, view, layer, look, rows) {
    const { context } = brush
    const seen = rows.filter((row) => view.isInSight(layer.table.node[row]))
    if (seen.length > MOST_LABELS) return view.leaveOutLabels(seen.length)
    context.globalAlpha = look.alpha
    context.setLineDash([])
    context.font = `11px ${view.font}`
    context.textAlign = "center"
    context.textBaseline = "middle"
    context.lineJoin = "round"
    for (const row of seen) {
      const node = layer.table.node[row]
      const text = layer.words[layer.table.text[row]]
      const x = view.px[node]
      const away = Math.sign(look.size) * (0.5 * view.node + 9)
      const y = view.py[node] - away
      if (!view.claim(x, y, context.measureText(text).width, 12)) continue
      context.lineWidth = 3
      context.strokeStyle = view.ground
      context.strokeText(text, x, y)
      context.fillStyle = look.colour[view.isDark]
      context.fillText(text, x, y)
    }
  },
}

function paintAt(brush, view, layer, row, look, radius) {
  const node = layer.table.node[row]
  if (view.isInSight(node)) brush.shape(look.marker, view.px[node], view.py[node], radius)
}

function paintHead(brush, x0, y0, x1, y1, share, size) {
  const angle = Math.atan2(y1 - y0, x1 - x0)
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)]
  const [x, y] = [x0 + share * (x1 - x0) + 0.5 * size * cos, y0 + share * (y1 - y0) + 0.5 * size * sin]
  const [bx, by] = [x - size * cos, y - size * sin]
  brush.polygon([x, y, bx - 0.5 * size * sin, by + 0.5 * size * cos, bx + 0.5 * size * sin, by - 0.5 * size * cos])
  if (++brush.waiting == SHAPES_A_PATH) brush.flushShapes()
}

// Return a line between the edges of two nodes, shifted to the right.
function aside([x0, y0, x1, y1], clear, lane) {
  const [dx, dy] = [x1 - x0, y1 - y0]
  const length = Math.hypot(dx, dy) || 1
  const share = Math.min(clear / length, 0.4)
  const [ox, oy] = [(-lane * dy) / length, (lane * dx) / length]
  return [x0 + share * dx + ox, y0 + share * dy + oy, x1 - share * dx + ox, y1 - share * dy + oy]
}

// Paint the nodes: each in its look of the lowest rank at this time, or in the plain look.
function paintNodes(brush, view, layers, plain) {
  const count = view.px.length
  const best = new Array(count).fill(null)
  for (const [layer, rows] of layers) {
    for (const row of rows) {
      const node = layer.table.node[row]
      const look = lookOf(layer, row)
      if (best[node] && best[node].look.rank < look.rank) continue
      const colour = colourOf(layer, look, row, view.isDark)
      // Of looks with the same rank, the one with the largest weight is painted.
      if (best[node] && best[node].look.rank == look.rank && best[node].weight >= weightOf(layer, row)) continue
      best[node] = { look, colour, weight: weightOf(layer, row) }
    }
  }
  const groups = new Map()
  for (let node = 0; node < count; node++) {
    if (!view.isInSight(node)) continue
    const { look, colour } = best[node] ?? { look: plain, colour: plain.colour[view.isDark] }
    const key = `${look.rank} ${look.marker} ${colour} ${look.is_dashed}`
    if (!groups.has(key)) groups.set(key, { look, colour, nodes: [] })
    groups.get(key).nodes.push(node)
  }
  const isDense = view.node < 7
  for (const { look, colour, nodes } of [...groups.values()].sort((a, b) => b.look.rank - a.look.rank)) {
    const isCross = look.marker == "x"
    const width = isCross ? 2.8 : isDense ? 0.6 : 1.1
    if (look.is_dashed) brush.shapes(null, colour, 1.2, { dash: [2, 2] })
    else brush.shapes(isCross ? null : colour, isCross ? colour : view.outline, width)
    for (const node of nodes) brush.shape(look.marker, view.px[node], view.py[node], lengthOf(look, view.node) / 2)
    brush.flushShapes()
  }
  view.nodeLooks = best.map((one) => (one ? one.look : plain))
}

// Return the points that are at least DOT_GAP px from the last point before that is returned.
function spaced(points) {
  const result = []
  for (const point of points) {
    const last = result[result.length - 1]
    if (!last || Math.hypot(point[1] - last[1], point[2] - last[2]) >= DOT_GAP) result.push(point)
  }
  return result
}

// Return the sample of a look for the legend: an SVG of 24 x 16 px.
function swatch(mark, look, isDark) {
  const colour = look.colour[isDark]
  const line = (width, extra = "") =>
    `<path d="M2 8H22" stroke="${colour}" stroke-width="${width}" stroke-linecap="round" fill="none" ${extra}/>`
  const round = (radius, extra) => `<circle cx="12" cy="8" r="${radius}" ${extra}/>`
  const outline = `stroke="${["#5D6875", "#9AA5B1"][isDark]}"`
  const node = {
    circle: round(5, `fill="${colour}" ${outline}`),
    square: `<rect x="6.5" y="2.5" width="11" height="11" fill="${colour}" ${outline}/>`,
    triangle: `<path d="M12 1.5L18 13.5H6Z" fill="${colour}" ${outline}/>`,
    diamond: `<path d="M12 1.5L18.5 8L12 14.5L5.5 8Z" fill="${colour}" ${outline}/>`,
    x: `<path d="M7.5 3.5L16.5 12.5M16.5 3.5L7.5 12.5" stroke="${colour}" stroke-width="2.4"/>`,
  }
  const drawn = {
    node: look.is_dashed ? round(5, `fill="none" stroke="${colour}" stroke-dasharray="2 2"`) : node[look.marker],
    track: `<path d="M2 8H12" stroke="${colour}" stroke-width="1.6"/><path d="M12 8H22" stroke="${colour}" stroke-width="1.6" stroke-dasharray="3 2"/>${round(2.4, `fill="${colour}"`)}`,
    area: `${round(7.4, `fill="${colour}" opacity="0.35"`)}<path d="M12 3.5L16.5 8L12 12.5L7.5 8Z" fill="${colour}"/>`,
    disc: node[look.marker],
    ring: round(5.6, `fill="none" stroke="${colour}" stroke-width="${Math.min(look.width, 2.6)}" ${look.is_dashed ? 'stroke-dasharray="3 2"' : ""}`),
    cross: node.x,
    loss: node.x,
    line: line(clamp(look.size * 9, look.least, 6), look.is_dashed ? 'stroke-dasharray="4 3"' : ""),
    half: line(4),
    arrow: line(clamp(look.least, 1.2, 3)) + `<path d="M11 4L18 8L11 12Z" fill="${colour}"/>`,
    packet: line(2.6, 'opacity="0.6"') + round(4.4, `fill="${colour}"`),
    wave: round(5.6, `fill="none" stroke="${colour}" stroke-width="2"`),
    label: `<text x="12" y="12" font-size="11" text-anchor="middle" fill="${colour}">a</text>`,
    strip: `<rect x="2" y="3.5" width="20" height="9" fill="${colour}"/>`,
  }
  return `<svg width="24" height="16" aria-hidden="true"><g opacity="${mark == "area" ? 1 : Math.max(look.alpha, 0.35)}">${drawn[mark] ?? ""}</g></svg>`
}

function scaleSwatch(scale, isDark) {
  const shades = scale.colours[isDark]
  const bars = Array.from({ length: 12 }, (_, i) => shades[Math.round((i / 11) * (shades.length - 1))])
  const drawn = bars.map((shade, i) => `<rect x="${i * 5}" y="3" width="5.2" height="10" fill="${shade}"/>`).join("")
  return `<svg width="60" height="16" aria-hidden="true">${drawn}</svg>`
}
