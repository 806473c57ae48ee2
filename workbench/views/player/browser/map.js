// The map: three canvases on top of each other. Links, walls and the scale bar are painted when the view changes,
// states when the set of visible rows changes, and moving marks in every picture.

const MARGIN = 34
const CLOSEST = 60
const MOST_LINKS = 12000
const ROOM_FOR_DETAILS = 4.5
const NUMBERS = "numbers" // the layer with the numbers of nodes

class NetworkMap {
  // Set by paint() from the player's theme and run.
  isDark = 0
  ground = ""
  outline = ""
  lostAt = []
  nodeLooks = null // for each node, the look of its topmost mark

  constructor(player, box) {
    this.player = player
    this.box = box
    box.tabIndex = 0
    box.setAttribute("role", "group")
    this.canvases = ["still", "states", "moving"].map((name) => {
      const canvas = document.createElement("canvas")
      canvas.className = `wb-${name}`
      canvas.setAttribute("aria-hidden", "true")
      box.append(canvas)
      return canvas
    })
    this.brushes = this.canvases.map((canvas) => new Brush(canvas.getContext("2d")))
    this.tip = element("div", "wb-tip", box)
    this.tip.hidden = true
    this.leftOut = element("div", "wb-left-out", box)
    this.addZoomButtons()
    this.pointers = new Map()
    for (const name of ["pointerdown", "pointermove", "pointerup", "pointercancel", "pointerleave", "wheel", "dblclick"])
      box.addEventListener(name, (event) => this[name](event), { passive: name != "wheel" })
  }

  addZoomButtons() {
    const buttons = element("div", "wb-zoom", this.box)
    for (const [text, title, act] of [
      ["+", "Zoom in", () => this.zoom(1.5)],
      ["−", "Zoom out", () => this.zoom(1 / 1.5)],
      ["⤢", "Show all", () => this.reset()],
      ["⇩", "Save the map as PNG", () => this.save()],
    ])
      button(buttons, text, title, act).tabIndex = -1 // keys do the same, so that the map is a single Tab stop
    buttons.addEventListener("pointerdown", (event) => event.stopPropagation())
    buttons.addEventListener("dblclick", (event) => event.stopPropagation())
  }

  // Show a run. If the network is the same as before, the visible section remains.
  feed(picture) {
    const { x, y } = picture.plan
    const before = this.plan
    this.picture = picture
    this.plan = picture.plan
    // The positions of a network that changes are those of a moment.
    const isChanging = picture.plan.is_changing && before?.is_changing
    const isSame = before && (isChanging ? areEqual(picture.plan.id, before.id) && areEqual(picture.plan.box, before.box) : areEqual(x, before.x) && areEqual(y, before.y))
    // Links need not be painted again if the network is the same.
    this.isStill &&= isSame && !isChanging && ["a", "b", "shade", "walls"].every((name) => areEqual(this.plan[name], before[name]))
    this.order = [...picture.layers, numbersOf(picture)]
      .map((layer, index) => ({ layer, index }))
      .sort((one, other) => one.layer.level - other.layer.level || one.index - other.index)
      .map((one) => one.layer)
    this.px = new Float32Array(x.length)
    this.py = new Float32Array(x.length)
    this.shown = this.movedTo = null
    if (!isSame && this.width) this.reset()
    else if (this.width) this.place()
  }

  resize(width, height) {
    const isNew = !this.width
    const [middleX, middleY] = isNew ? [0, 0] : this.groundAt(this.width / 2, this.height / 2)
    const closeness = isNew ? 1 : this.px_m / this.fitted
    this.width = width
    this.height = height
    this.ratio = window.devicePixelRatio || 1
    for (const canvas of this.canvases) {
      canvas.width = Math.round(width * this.ratio)
      canvas.height = Math.round(height * this.ratio)
      canvas.style.width = `${width}px`
      canvas.style.height = `${height}px`
    }
    this.fit()
    if (isNew || closeness == 1) return this.reset()
    this.px_m = this.fitted * closeness
    this.left = width / 2 - middleX * this.px_m
    this.top = height / 2 + middleY * this.px_m
    this.lay()
  }

  fit() {
    const [x0, y0, x1, y1] = this.plan.box
    this.fitted = Math.min((this.width - 2 * MARGIN) / (x1 - x0), (this.height - 2 * MARGIN) / (y1 - y0))
  }

  reset() {
    this.fit()
    const [x0, y0, x1, y1] = this.plan.box
    this.px_m = this.fitted
    this.left = this.width / 2 - (this.px_m * (x0 + x1)) / 2
    this.top = (this.height - 6) / 2 + (this.px_m * (y0 + y1)) / 2
    this.lay()
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const next = clamp(this.px_m * factor, 0.5 * this.fitted, CLOSEST * this.fitted)
    const [groundX, groundY] = this.groundAt(x, y)
    this.px_m = next
    this.left = x - groundX * next
    this.top = y + groundY * next
    this.lay()
  }

  groundAt(x, y) {
    return [(x - this.left) / this.px_m, (this.top - y) / this.px_m]
  }

  // Compute the positions of nodes in the visible section; then everything must be painted again.
  lay() {
    this.isStill = false
    this.place()
  }

  place() {
    this.placeNodes()
    this.node = clamp(0.34 * this.plan.spacing * this.px_m, this.px_m > this.fitted ? 4.5 : 3, 20)
    this.shown = null
    this.player.wantPicture()
  }

  placeNodes() {
    const { x, y } = this.plan
    for (let i = 0; i < x.length; i++) {
      this.px[i] = this.left + this.px_m * x[i]
      this.py[i] = this.top - this.px_m * y[i]
    }
  }

  toPx(x, y) {
    return [this.left + this.px_m * x, this.top - this.px_m * y]
  }

  // In a network that changes, take the positions and the links of the present time.
  followChanges() {
    const { plan, tick } = this
    if (plan.tracks && this.movedTo !== tick) {
      this.movedTo = tick
      if (moveNodes(plan, tick)) {
        this.placeNodes()
        this.isStill = false
      }
      this.shown = null
    }
    if (plan.links && relink(plan, tick, this.picture.link_shades[0].length)) this.isStill = false
  }

  // Return the two parts of the track of a node, before and after the present, as lists of [tick, x, y] in px.
  trackOf(node) {
    const { tracks } = this.plan
    const moving = tracks?.indexOf.get(node)
    if (moving === undefined) return [[], []]
    const end = this.player.duration / this.picture.tick_s
    const window = tracks.window ?? end
    const [low, high] = [Math.max(this.tick - window, 0), Math.min(this.tick + window, end)]
    return [[low, this.tick], [this.tick, high]].map(([from, until]) =>
      trackPiece(tracks, moving, from, until).map(([tick, x, y]) => [tick, ...this.toPx(x, y)])
    )
  }

  isInSight(node) {
    return this.px[node] > -40 && this.px[node] < this.width + 40 && this.py[node] > -40 && this.py[node] < this.height + 40
  }

  ends(layer, row) {
    const { node, peer } = layer.table
    return [this.px[node[row]], this.py[node[row]], this.px[peer[row]], this.py[peer[row]]]
  }

  // Return the position of a moving frame, and of the end of its tail.
  packetAt(layer, row) {
    const { from, until } = layer.table
    const [ax, ay, bx, by] = this.ends(layer, row)
    const share = clamp(weightOf(layer, row) * ((this.tick - from[row]) / (until[row] - from[row])), 0, 1)
    const length = Math.hypot(bx - ax, by - ay) || 1
    const tail = Math.max(share - Math.min(0.3, Math.max(2.5 * this.node, 14) / length), 0)
    return [ax + share * (bx - ax), ay + share * (by - ay), ax + tail * (bx - ax), ay + tail * (by - ay)]
  }

  // Return whether a label has room; if so, reserve that room.
  claim(x, y, width, height) {
    const box = [x - width / 2 - 1, y - height / 2, x + width / 2 + 1, y + height / 2]
    if (box[2] < 0 || box[0] > this.width || box[3] < 0 || box[1] > this.height) return false
    const cells = []
    for (let column = Math.floor(box[0] / 24); column <= box[2] / 24; column++)
      for (let line = Math.floor(box[1] / 12); line <= box[3] / 12; line++) cells.push(column * 4096 + line)
    const isFree = cells.every((cell) => (this.labels.get(cell) ?? []).every((o) => o[2] < box[0] || o[0] > box[2] || o[3] < box[1] || o[1] > box[3]))
    if (!isFree) {
      this.leaveOutLabels(1)
      return false
    }
    for (const cell of cells) this.labels.set(cell, [...(this.labels.get(cell) ?? []), box])
    return true
  }

  leaveOutLabels(count) {
    this.labelsLeftOut += count
  }

  // Painting

  paint() {
    const { player } = this
    if (!this.width) return
    this.tick = player.tick
    this.followChanges()
    this.isDark = player.isDark
    this.font = player.font
    ;[this.ground, this.outline, this.lostAt] = [player.colour("ground"), player.colour("outline"), this.picture.lost_at]
    if (!this.isStill) this.paintStill()
    this.paintStates()
    this.paintMoving()
  }

  clear(brush) {
    const { context } = brush
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0)
    context.globalAlpha = 1
    context.clearRect(0, 0, this.width, this.height)
  }

  paintStill() {
    const brush = this.brushes[0]
    const { a, b, ab, ba, shade, walls, is_changing: isChanging } = this.plan
    const shades = this.picture.link_shades[this.isDark]
    this.clear(brush)
    const isDense = this.node < 7
    const seen = []
    for (let i = 0; i < a.length; i++) if (this.isInSight(a[i]) || this.isInSight(b[i])) seen.push(i)
    const step = Math.max(1, Math.ceil(seen.length / MOST_LINKS))
    this.linksLeftOut = step > 1 ? seen.length - Math.ceil(seen.length / step) : 0
    const kept = step > 1 ? seen.filter((_, i) => i % step == 0) : seen
    // In a network that changes, a link may lose all frames for a time; it has the kind -1.
    const kindOf = isChanging ? (i) => (ab[i] || ba[i] ? shade[i] : -1) : (i) => shade[i]
    for (const [kind, some] of [...grouped(kept, kindOf)].sort((one, other) => one[0] - other[0])) {
      if (kind < 0) brush.strokes(shades[shades.length - 1], 0.8, { dash: [2, 4] })
      else brush.strokes(shades[kind], (0.5 + (0.8 * kind) / (shades.length - 1)) * (isDense ? 0.6 : 1))
      if (this.player.isOn("links")) for (const i of some) brush.segment(this.px[a[i]], this.py[a[i]], this.px[b[i]], this.py[b[i]])
      brush.flushStrokes()
    }
    brush.strokes(this.player.colour("wall"), 2.5, { alpha: 0.75, cap: "round" })
    for (let i = 0; i < walls.length; i += 4) {
      const [x0, y0, x1, y1] = [walls[i], walls[i + 1], walls[i + 2], walls[i + 3]]
      brush.segment(this.left + this.px_m * x0, this.top - this.px_m * y0, this.left + this.px_m * x1, this.top - this.px_m * y1)
    }
    brush.flushStrokes()
    this.paintScaleBar(brush)
    this.isStill = true
  }

  paintScaleBar(brush) {
    const { context } = brush
    const length = roundLength(this.width / this.px_m / 7)
    const [right, y] = [this.width - 12, this.height - 8]
    brush.strokes(this.player.colour("faint"), 2)
    brush.segment(right - length * this.px_m, y, right, y)
    brush.flushStrokes()
    context.fillStyle = this.player.colour("faint")
    context.font = `11px ${this.font}`
    context.textAlign = "right"
    context.textBaseline = "middle"
    context.fillText(`${length} m`, right - length * this.px_m - 6, y)
  }

  // Return the visible rows of the layers that are on and do not move.
  states() {
    const found = []
    for (const layer of this.order) {
      if (layer.is_moving || !layer.is_drawn || !this.player.isOn(layer.name)) continue
      if (layer.is_detail && this.node < ROOM_FOR_DETAILS) continue
      let rows = aliveRows(layer, this.tick)
      const { brushed, pathNow } = this.player
      if (layer.of_path) rows = rows.filter((row) => (brushed ? brushed.has(layer.table.path[row]) : layer.table.path[row] == pathNow))
      found.push([layer, rows])
    }
    return found
  }

  paintStates() {
    const states = this.states()
    if (this.shown && sameRows(this.shown, states)) return
    this.shown = states
    const brush = this.brushes[1]
    this.clear(brush)
    this.labels = new Map()
    this.labelsLeftOut = 0
    let hasNodes = false
    for (const [layer, rows] of states) {
      if (layer.level >= this.picture.node_level && !hasNodes) hasNodes = this.paintNodeLayers(states)
      this.paintLayer(brush, layer, rows)
    }
    if (!hasNodes) this.paintNodeLayers(states)
    this.tellWhatIsLeftOut()
  }

  paintNodeLayers(states) {
    paintNodes(this.brushes[1], this, states.filter(([layer]) => layer.has_nodes), this.picture.plain_node)
    return true
  }

  paintLayer(brush, layer, rows) {
    const { peer } = layer.table
    for (const [look, some] of grouped(rows, (row) => lookOf(layer, row))) {
      const mark = look.mark || layer.mark
      if (!PAINTERS[mark] || (look.chip && !this.player.isOn(look.chip))) continue
      const drawn = BETWEEN.has(mark) ? some.filter((row) => peer && peer[row] >= 0) : some
      PAINTERS[mark](brush, this, layer, look, drawn)
    }
  }

  paintMoving() {
    const brush = this.brushes[2]
    this.clear(brush)
    this.inTheAir = []
    for (const layer of this.order) {
      if (!layer.is_moving || !this.player.isOn(layer.name)) continue
      const rows = aliveRows(layer, this.tick)
      this.paintLayer(brush, layer, rows)
      this.inTheAir.push([layer, rows])
    }
    const { ringed } = this
    if (ringed >= 0) {
      brush.shapes(null, this.player.colour("text"), 1.6, { dash: [4, 3] })
      brush.shape("circle", this.px[ringed], this.py[ringed], Math.max(2.2 * this.node, 17) / 2)
      brush.flushShapes()
    }
  }

  // The index of the node with a ring around it, or -1.
  get ringed() {
    return this.player.selection.node
  }

  tellWhatIsLeftOut() {
    const hidden = this.order.filter((one) => one.is_detail && this.node < ROOM_FOR_DETAILS && one.rows && this.player.isOn(one.name))
    const omitted = [...new Set(hidden.map((layer) => layer.name))]
    if (this.labelsLeftOut) omitted.push(`${this.labelsLeftOut} labels`)
    if (this.linksLeftOut) omitted.push(`${this.linksLeftOut.toLocaleString("en")} links`)
    this.leftOut.textContent = omitted.length ? `zoom in for ${omitted.join(", ")}` : ""
  }

  save() {
    const canvas = document.createElement("canvas")
    canvas.width = this.canvases[0].width
    canvas.height = this.canvases[0].height
    const context = canvas.getContext("2d")
    context.fillStyle = this.player.colour("ground")
    context.fillRect(0, 0, canvas.width, canvas.height)
    for (const one of this.canvases) context.drawImage(one, 0, 0)
    const link = document.createElement("a")
    link.href = URL.createObjectURL(pngWithRecord(canvas.toDataURL("image/png")))
    link.download = `${this.player.fileName()}.png`
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 10000)
  }

  // Mouse, fingers

  /** @returns {[number, number]} in px from the upper left corner */
  at(event) {
    const box = this.box.getBoundingClientRect()
    return [event.clientX - box.left, event.clientY - box.top]
  }

  pointerdown(event) {
    this.pointers.set(event.pointerId, this.at(event))
    this.begun = this.at(event)
    this.hasMoved = false
  }

  pointermove(event) {
    const here = this.at(event)
    const before = this.pointers.get(event.pointerId)
    if (!before) return this.hover(here)
    if (Math.hypot(here[0] - this.begun[0], here[1] - this.begun[1]) > 4) {
      this.hasMoved = true
      this.box.setPointerCapture(event.pointerId)
    }
    if (!this.hasMoved) return
    if (this.pointers.size == 2) {
      const other = [...this.pointers].find(([id]) => id != event.pointerId)[1]
      const distance = (one) => Math.hypot(one[0] - other[0], one[1] - other[1]) || 1
      this.zoom(distance(here) / distance(before), (here[0] + other[0]) / 2, (here[1] + other[1]) / 2)
    } else {
      this.left += here[0] - before[0]
      this.top += here[1] - before[1]
      this.lay()
    }
    this.pointers.set(event.pointerId, here)
    this.tip.hidden = true
  }

  pointerup(event) {
    if (this.pointers.delete(event.pointerId) && !this.hasMoved) this.pick(this.at(event))
  }

  pointercancel(event) {
    this.pointers.delete(event.pointerId)
  }

  pointerleave(event) {
    this.pointers.delete(event.pointerId)
    this.tip.hidden = true
  }

  wheel(event) {
    // The wheel scrolls the page. With Ctrl, or if the map has the focus, it zooms.
    if (!event.ctrlKey && !event.metaKey && !this.box.matches(":focus-within")) return
    event.preventDefault()
    this.zoom(Math.exp(-clamp(event.deltaY, -120, 120) / 300), ...this.at(event))
  }

  dblclick() {
    this.reset()
  }

  nearest([x, y], reach) {
    let [found, distance] = [-1, reach]
    for (let i = 0; i < this.px.length; i++) {
      const d = Math.hypot(this.px[i] - x, this.py[i] - y)
      if (d < distance) [found, distance] = [i, d]
    }
    return found
  }

  // Return the nearest node in a direction from a node: the one with the shortest way, where a detour counts twice. If
  // there is none, return the node itself.
  neighborOf(node, dx, dy) {
    if (node < 0) return this.nearest([this.width / 2, this.height / 2], Infinity)
    let [found, shortest] = [node, Infinity]
    for (let i = 0; i < this.px.length; i++) {
      const [x, y] = [this.px[i] - this.px[node], this.py[i] - this.py[node]]
      const ahead = x * dx + y * dy
      const aside = Math.abs(x * dy - y * dx)
      if (ahead > 0.5 && aside <= 2 * ahead && ahead + 2 * aside < shortest) [found, shortest] = [i, ahead + 2 * aside]
    }
    return found
  }

  // Return the moving frame under a point as [layer, row], or null.
  frameAt([x, y]) {
    for (const [layer, rows] of this.inTheAir ?? [])
      for (const row of layer.is_frames ? rows : []) {
        if ((lookOf(layer, row).mark || layer.mark) != "packet") continue
        const [fx, fy] = this.packetAt(layer, row)
        if (Math.hypot(fx - x, fy - y) < Math.max(0.5 * this.node, 6)) return row
      }
    return -1
  }

  pick(where) {
    const frame = this.frameAt(where)
    if (frame >= 0) this.player.pickFrame(frame, false)
    else this.player.pickNode(this.nearest(where, 18))
  }

  hover(where) {
    const tooltip = this.tooltipAt(where)
    this.tip.hidden = !tooltip
    this.box.style.cursor = tooltip?.isPickable ? "pointer" : ""
    if (!tooltip) return
    this.tip.innerHTML = tooltip.html
    this.tip.style.left = `${clamp(where[0] + 12, 0, Math.max(this.width - this.tip.offsetWidth - 4, 0))}px`
    this.tip.style.top = `${where[1] + 16 + this.tip.offsetHeight > this.height ? where[1] - this.tip.offsetHeight - 8 : where[1] + 14}px`
  }

  tooltipAt(where) {
    const frame = this.frameAt(where)
    if (frame >= 0) return { html: escapeText(this.player.frameInWords(frame)), isPickable: true }
    const node = this.nearest(where, Math.max(0.8 * this.node, 9))
    if (node >= 0) {
      const role = this.nodeLooks?.[node]?.label ?? ""
      return { html: `node <b>${this.plan.id[node]}</b>${role ? `<br>${escapeText(role)}` : ""}`, isPickable: true }
    }
    const mark = this.changeAt(where)
    if (mark) return { html: escapeText(mark) }
    const link = this.linkAt(where)
    if (link < 0 || !this.player.isOn("links")) return null
    const { a, b, ab, ba, id } = this.plan
    return { html: `${id[a[link]]} → ${id[b[link]]}: ${ab[link]} % arrive<br>${id[b[link]]} → ${id[a[link]]}: ${ba[link]} % arrive` }
  }

  // Return the text about the waypoint or the center of an area under a point, or "".
  changeAt([x, y]) {
    for (const [layer, rows] of this.shown ?? []) {
      if (layer.mark != "area" && layer.mark != "track") continue
      const { node, x_m: xs, y_m: ys, text } = layer.table
      for (const row of rows) {
        if (layer.mark == "area") {
          const [ax, ay] = this.toPx(xs ? xs[row] : 0, ys ? ys[row] : 0)
          if (Math.hypot(ax - x, ay - y) < 10) return layer.words[text[row]]
          continue
        }
        const waypoints = this.trackOf(node[row]).flatMap((part) => part.slice(1, -1))
        const near = waypoints.find(([, tx, ty]) => Math.hypot(tx - x, ty - y) < 6)
        if (near) return `node ${this.plan.id[node[row]]} at ${writeTime(near[0] * this.picture.tick_s, 1)} s`
      }
    }
    return ""
  }

  linkAt([x, y]) {
    const { a, b } = this.plan
    let [found, distance] = [-1, 5]
    for (let i = 0; i < a.length; i++) {
      const [ax, ay, bx, by] = [this.px[a[i]], this.py[a[i]], this.px[b[i]], this.py[b[i]]]
      if (Math.min(ax, bx) > x + 5 || Math.max(ax, bx) < x - 5 || Math.min(ay, by) > y + 5 || Math.max(ay, by) < y - 5) continue
      const along = clamp(((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2 || 1), 0, 1)
      const d = Math.hypot(ax + along * (bx - ax) - x, ay + along * (by - ay) - y)
      if (d < distance) [found, distance] = [i, d]
    }
    return found
  }
}

// Return the layer with the numbers of all nodes.
function numbersOf({ plan, colours, node_level }) {
  const nodes = Array.from(plan.id.keys())
  const layer = {
    name: NUMBERS,
    mark: "label",
    level: 2 * node_level,
    looks: [{ colour: colours.text, size: -1, alpha: 1 }],
    words: Array.from(plan.id, String),
    is_drawn: true,
    is_detail: true,
    table: { from: new Uint8Array(nodes.length), until: new Float32Array(nodes.length).fill(Infinity), node: nodes, text: nodes },
  }
  prepareLayer(layer)
  return layer
}

function areEqual(one, other) {
  return one.length == other.length && one.every((value, i) => value == other[i])
}

function sameRows(before, now) {
  if (before.length != now.length) return false
  return now.every(([layer, rows], i) => {
    const [oldLayer, old] = before[i]
    if (layer !== oldLayer || rows.length != old.length) return false
    for (let k = 0; k < rows.length; k++) if (rows[k] != old[k]) return false
    return true
  })
}

// Return the largest number of the series 1, 2, 5, 10, 20, ... up to a length.
function roundLength(length) {
  const power = 10 ** Math.floor(Math.log10(length))
  return [5, 2, 1].find((step) => step * power <= length * 1.0000001) * power
}
