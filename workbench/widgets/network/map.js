// Tools to edit a network, on the map of a player that shows a run of the network, or on a map of their own. An edit is drawn at
// once and sent to the kernel; the run or the network that the kernel sends back replaces what was drawn.

const TOOLS = [
  ["select", "Select", "Select: click a node or a link, or drag nodes; Shift adds to the selection, or draws a frame around nodes"],
  ["node", "+ Node", "Add nodes: click the position of a new node"],
  ["link", "+ Link", "Add links: drag from node to node, or click two nodes one after the other"],
  ["erase", "Erase", "Erase: click a node, a link, a waypoint or the middle of a jammer"],
  ["waypoint", "+ Waypoint", "Move nodes: select a node, then click the places to which it moves; drag a waypoint to change it"],
]
const ASKED = {
  sink: ["Sink", "Make the selected nodes sinks, or no longer sinks"],
  source: ["Source", "Make the selected nodes sources, or no longer sources"],
  fail: ["Fail", "Let the selected nodes fail, or no longer fail"],
  crash: ["Crash", "Let the selected nodes crash and lose their memory, or no longer crash"],
  join: ["Join", "Let the selected nodes join during the run, or from its start"],
  leave: ["Leave", "Let the selected nodes leave during the run, or stay"],
  partition: ["Partition", "Cut the selected nodes off from all others, or no longer"],
  subscribe: ["Subscribe", "Let the selected nodes subscribe"],
  publish: ["Publish", "Let the selected nodes publish"],
}
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }
const STEP = 0.1 // of the distance between neighbors: how far an arrow key moves a node
const SETTLED_MS = 300
const WAIT_FOR_RUN_MS = 500
const WAIT_FOR_KERNEL_MS = 2000
const EDIT_KEYS = "n and p select the next and the previous node, Shift adds a node to the selection, arrows move the selected nodes, Delete removes them, a adds a node, l links the selected nodes"
const CLICK_PX = 4
const HANDLE_PX = 10 // from the middle of a waypoint or a jammer, at which it can be dragged
const PATH_COLOURS = ["#7B3FA0", "#CDA2EE"] // light, dark
const JAMMER_COLOURS = ["#B5460F", "#F0925A"]

// Return a class of maps that an editor can change. `Base`: the class of the player's map, or of a map without a player.
const editable = (Base) => class EditMap extends Base {
  constructor(player, box, editor) {
    super(player, box)
    this.editor = editor
    this.act = null
    this.held = null
    this.from = null
  }

  // Show a network. If it resembles the last one, the visible section remains, unless a node is now outside of it.
  feed(picture) {
    const isLike = this.plan && this.width && areAlike(this.plan, picture.plan)
    const [isZoomed, ...section] = [this.isZoomed, this.px_m, this.left, this.top]
    super.feed(picture)
    this.index = new Map(Array.from(picture.plan.id, (id, i) => [id, i]))
    if (isLike) {
      this.fit()
      ;[this.isZoomed, this.px_m, this.left, this.top] = [isZoomed, ...section]
      this.place()
      if (!this.isZoomed && !this.fills()) this.reset()
    }
    if (this.held) this.dragTo(this.here)
  }

  zoom(...how) {
    this.isZoomed = true
    super.zoom(...how)
  }

  reset() {
    this.isZoomed = false
    super.reset()
  }

  // Return whether all nodes are visible and fill most of the map.
  fills() {
    const { px, py, width, height } = this
    return this.px_m > 0.75 * this.fitted && px.every((x, i) => x > 0 && x < width && py[i] > 0 && py[i] < height)
  }

  relayer(layer) {
    prepareLayer(layer)
    this.order = [layer, numbersOf(this.picture)]
    this.shown = null
    this.player.wantPicture()
  }

  placeOf(id) {
    return this.index.get(id) ?? -1
  }

  linkOf(a, b) {
    const { plan } = this
    const [low, high] = [this.placeOf(a), this.placeOf(b)].sort((x, y) => x - y)
    for (let i = 0; i < plan.a.length; i++) if (plan.a[i] == low && plan.b[i] == high) return i
    return -1
  }

  // Dragged nodes

  hold(ids) {
    const known = ids.filter((id) => this.placeOf(id) >= 0)
    const of = (column) => known.map((id) => column[this.placeOf(id)])
    this.held = { ids: known, x: of(this.plan.x), y: of(this.plan.y) }
  }

  dragTo([x, y]) {
    this.putHeld((x - this.begun[0]) / this.px_m, (this.begun[1] - y) / this.px_m)
    this.editor.writeStatus()
  }

  putHeld(dx, dy) {
    const { ids, x, y } = this.held
    for (const [i, id] of ids.entries()) {
      const place = this.placeOf(id)
      if (place < 0) continue
      this.plan.x[place] = toCentimetres(x[i] + dx)
      this.plan.y[place] = toCentimetres(y[i] + dy)
    }
    this.lay()
  }

  // End dragging. Unless the nodes are put down, they return to their previous positions.
  letGo(isPutDown) {
    if (this.held && !isPutDown) this.putHeld(0, 0)
    this.held = null
  }

  shift(ids, dx, dy) {
    this.hold(ids)
    this.putHeld(dx, dy)
    this.held = null
  }

  // Painting

  get ringed() {
    return this.editor.isEditing ? -1 : super.ringed
  }

  paintMoving() {
    super.paintMoving()
    if (!this.editor.isEditing) return
    const brush = this.brushes[2]
    const accent = accentOf(this.player)
    const link = this.editor.link && this.linkOf(...this.editor.link)
    if (link >= 0 && this.editor.link) {
      brush.strokes(accent, 3.5, { alpha: 0.8, cap: "round" })
      brush.segment(...this.endsOf(link))
      brush.flushStrokes()
    }
    const radius = Math.max(0.75 * this.node, 7)
    brush.shapes(null, accent, 2.2)
    const ringed = [...this.editor.picked, ...(this.from === null ? [] : [this.from])]
    for (const place of ringed.map((id) => this.placeOf(id))) {
      if (place >= 0 && this.isInSight(place)) brush.shape("circle", this.px[place], this.py[place], radius)
    }
    brush.flushShapes()
    for (const shape of this.editor.overlay) {
      if (shape.kind == "path") this.paintPath(brush, shape)
      else this.paintJammer(brush, shape)
    }
    this.paintAct(brush, accent)
  }

  // Paint the path of moving nodes: a dashed line from the place of a single node through the waypoints, with their times.
  paintPath(brush, { nodes, x, y, labels }) {
    const colour = PATH_COLOURS[this.isDark]
    const points = x.map((_, i) => this.pixelOf(x[i], y[i]))
    const place = nodes.length == 1 ? this.placeOf(nodes[0]) : -1
    const line = place < 0 ? points : [[this.px[place], this.py[place]], ...points]
    brush.strokes(colour, 2, { dash: [6, 4] })
    for (let i = 1; i < line.length; i++) brush.segment(...line[i - 1], ...line[i])
    brush.flushStrokes()
    brush.shapes(this.ground, colour, 2)
    for (const [px, py] of points) brush.shape("square", px, py, 4.5)
    brush.flushShapes()
    for (const [i, [px, py]] of points.entries()) this.write(brush, labels[i], px + 8, py - 9, colour)
  }

  paintJammer(brush, { x, y, radius, label }) {
    const colour = JAMMER_COLOURS[this.isDark]
    const [px, py] = this.pixelOf(x, y)
    brush.shapes(colour, null, 1, { alpha: 0.06 })
    brush.shape("circle", px, py, radius * this.px_m)
    brush.flushShapes()
    brush.shapes(null, colour, 1.5, { dash: [6, 4] })
    brush.shape("circle", px, py, radius * this.px_m)
    brush.flushShapes()
    brush.shapes(null, colour, 2.5)
    brush.shape("x", px, py, 6)
    brush.flushShapes()
    this.write(brush, label, px + 10, py - 11, colour)
  }

  // Write a text on the map, with an outline in the colour of the ground.
  write({ context }, text, x, y, colour) {
    context.globalAlpha = 1
    context.setLineDash([])
    context.font = `600 11px ${this.font}`
    context.textAlign = "left"
    context.textBaseline = "middle"
    context.lineWidth = 3
    context.strokeStyle = this.ground
    context.strokeText(text, x, y)
    context.fillStyle = colour
    context.fillText(text, x, y)
  }

  pixelOf(x, y) {
    return [this.left + this.px_m * x, this.top - this.px_m * y]
  }

  // Return the waypoint or jammer at a point as {shape, point}, or null.
  handleAt([x, y]) {
    const isNear = (/** @type {[number, number]} */ place) => {
      const [px, py] = this.pixelOf(...place)
      return Math.hypot(px - x, py - y) < HANDLE_PX
    }
    for (const shape of [...this.editor.overlay].reverse()) {
      if (shape.kind == "disc") {
        if (isNear([shape.x, shape.y])) return { shape, point: 0 }
        continue
      }
      for (let point = shape.x.length - 1; point >= 0; point--) if (isNear([shape.x[point], shape.y[point]])) return { shape, point }
    }
    return null
  }

  dragHandle({ shape, point }, where) {
    const [x, y] = this.groundAt(...where).map(toCentimetres)
    if (shape.kind == "disc") Object.assign(shape, { x, y })
    else [shape.x[point], shape.y[point]] = [x, y]
  }

  paintAct(brush, accent) {
    if (!this.act || !this.here) return
    const [x, y] = this.here
    if (this.act.kind == "rubber") {
      const place = this.placeOf(this.act.from)
      brush.strokes(accent, 2, { dash: [5, 4] })
      if (place >= 0) brush.segment(this.px[place], this.py[place], x, y)
      brush.flushStrokes()
    } else if (this.act.kind == "frame") {
      const { context } = brush
      brush.shapes(null, accent, 1.2, { dash: [4, 3] })
      context.rect(this.begun[0], this.begun[1], x - this.begun[0], y - this.begun[1])
      brush.waiting = 1
      brush.flushShapes()
    }
  }

  endsOf(link) {
    const { a, b } = this.plan
    return [this.px[a[link]], this.py[a[link]], this.px[b[link]], this.py[b[link]]]
  }

  // Mouse, fingers

  nodeAt(where) {
    const place = this.nearest(where, Math.max(0.8 * this.node, 10))
    return place < 0 ? null : this.plan.id[place]
  }

  pointerdown(event) {
    if (!this.editor.isEditing) return super.pointerdown(event)
    if (event.button > 0) return
    super.pointerdown(event)
    if (this.pointers.size > 1) {
      this.act = { kind: "pan" }
      return this.letGo(false)
    }
    this.here = null
    this.act = this.begin(this.nodeAt(this.begun), event)
  }

  /** @returns {any} the action that a pointer begins: its kind, and the nodes or the shape that it is about */
  begin(node, event) {
    const { tool, picked } = this.editor
    const handle = tool == "waypoint" || (tool == "select" && node === null) ? this.handleAt(this.begun) : null
    if (handle) return { kind: "handle", ...handle }
    if (node === null) return { kind: tool == "select" && event.shiftKey ? "frame" : "pan" }
    if (tool == "link") return { kind: "rubber", from: node }
    if (tool == "erase") return { kind: "pan" }
    return { kind: "drag", ids: picked.includes(node) ? [...picked] : [node] }
  }

  pointermove(event) {
    const isDown = this.pointers.has(event.pointerId)
    if (!isDown || this.pointers.size > 1 || !this.act || this.act.kind == "pan") return super.pointermove(event)
    const here = this.at(event)
    if (!this.hasMoved && Math.hypot(here[0] - this.begun[0], here[1] - this.begun[1]) > CLICK_PX) {
      this.hasMoved = true
      this.box.setPointerCapture(event.pointerId)
      if (this.act.kind == "drag") this.hold(this.act.ids)
    }
    if (!this.hasMoved) return
    this.here = here
    this.tip.hidden = true
    this.pointers.set(event.pointerId, here)
    if (this.held) this.dragTo(here)
    if (this.act.kind == "handle") this.dragHandle(this.act, here)
    this.player.wantPicture()
  }

  pointerup(event) {
    if (!this.editor.isEditing) return super.pointerup(event)
    if (!this.pointers.delete(event.pointerId)) return
    const { act } = this
    this.act = null
    const where = this.at(event)
    if (!this.hasMoved) this.click(where, event)
    else if (act) this.finish(act, where)
    this.player.wantPicture()
  }

  pointercancel(event) {
    super.pointercancel(event)
    this.act = null
    this.letGo(false)
  }

  pointerleave(event) {
    super.pointerleave(event)
    if (!this.pointers.size && this.act && !this.hasMoved) this.act = null
  }

  finish(act, where) {
    const { editor } = this
    if (act.kind == "drag") {
      this.letGo(true)
      editor.sendMoved(act.ids)
    } else if (act.kind == "handle") {
      const [x, y] = this.groundAt(...where).map(toCentimetres)
      editor.sendOverlay({ kind: "move_point", item: act.shape.item, point: act.point, x, y })
    } else if (act.kind == "rubber") {
      const to = this.nodeAt(where)
      if (to !== null && to != act.from) editor.join([[act.from, to]])
    } else if (act.kind == "frame") {
      const [x0, x1] = [this.begun[0], where[0]].sort((one, other) => one - other)
      const [y0, y1] = [this.begun[1], where[1]].sort((one, other) => one - other)
      const inside = Array.from(this.plan.id).filter((_, i) => this.px[i] >= x0 && this.px[i] <= x1 && this.py[i] >= y0 && this.py[i] <= y1)
      editor.pick([...new Set([...editor.picked, ...inside])])
    }
  }

  click(where, event) {
    const { editor } = this
    const node = this.nodeAt(where)
    const isMore = event.shiftKey || event.ctrlKey || event.metaKey
    if (editor.tool == "erase") return this.eraseAt(where, node)
    if (editor.tool == "link") return this.joinAt(node)
    if (editor.tool == "waypoint" && node === null) return this.handleAt(where) ? undefined : editor.addWaypoint(this.groundAt(...where))
    if (editor.tool == "node" && node === null) return editor.addAt(this.groundAt(...where))
    if (node !== null) {
      const others = editor.picked.filter((one) => one != node)
      return editor.pick(isMore ? (others.length < editor.picked.length ? others : [...others, node]) : [node])
    }
    const link = this.linkAt(where)
    if (link >= 0) return editor.pickLink([this.plan.id[this.plan.a[link]], this.plan.id[this.plan.b[link]]])
    if (!isMore) editor.pick([])
  }

  eraseAt(where, node) {
    if (node !== null) return this.editor.erase([node], [])
    const handle = this.handleAt(where)
    if (handle) return this.editor.sendOverlay({ kind: "erase_point", item: handle.shape.item, point: handle.point })
    const link = this.linkAt(where)
    if (link >= 0) this.editor.erase([], [[this.plan.id[this.plan.a[link]], this.plan.id[this.plan.b[link]]]])
  }

  joinAt(node) {
    const { from } = this
    this.from = node !== null && from === null ? node : null
    if (from !== null && node !== null && from != node) this.editor.join([[from, node]])
  }

  hover(where) {
    super.hover(where)
    if (!this.editor.isEditing) return
    const { tool } = this.editor
    const isOnNode = this.nodeAt(where) !== null
    if (["select", "waypoint", "erase"].includes(tool) && !isOnNode && this.handleAt(where)) this.box.style.cursor = tool == "erase" ? "pointer" : "move"
    else if (["node", "waypoint"].includes(tool) && !isOnNode) this.box.style.cursor = "copy"
    else if (tool == "link") this.box.style.cursor = "crosshair"
    else if (isOnNode || (tool != "node" && this.linkAt(where) >= 0)) this.box.style.cursor = "pointer"
  }

  dblclick(event) {
    const isFree = this.editor.tool == "select" && this.nodeAt(this.at(event)) === null
    if (isFree || !this.editor.isEditing) this.reset()
  }
}

// The tools for a network, with a map of their own or, if the model has a clock, with the map of a player on that clock.
class NetworkEditor {
  isDark // 1 or 0; undefined until takeTheme() has set it
  player = null // the player whose map is edited
  isEditing = true // always, on a map of its own

  constructor(root, model) {
    this.root = root
    this.model = model
    this.selection = { node: -1, path: null, frame: -1 } // always empty; a map requires it
    this.tick = 0
    this.link = null
    this.picked = model.get("picked")
    this.tool = model.get("tool")
    this.overlay = []
    root.classList.add("wb-player", "wb-network")
    this.build()
    this.watch()
    this.feed()
    this.findPlayer()
  }

  build() {
    const { root } = this
    this.bar = element("div", "wb-tools", root)
    this.bar.setAttribute("role", "toolbar")
    this.bar.setAttribute("aria-label", "Tools of the map")
    const tools = TOOLS.filter(([name]) => name != "waypoint" || this.model.get("has_waypoints"))
    this.tools = tools.map(([name, text, tip]) => [name, button(this.bar, text, tip, () => this.setTool(name))])
    this.asks = element("span", "wb-asks", this.bar)
    this.history = element("span", "wb-history", this.bar)
    this.undoButton = button(this.history, "↶", "Undo", () => this.send({ kind: "undo" }))
    this.redoButton = button(this.history, "↷", "Redo", () => this.send({ kind: "redo" }))
    this.box = element("div", "wb-map", root)
    this.map = this.ownMap = new (editable(NetworkMap))(this, this.box, this)
    this.box.setAttribute("aria-label", `Network: ${EDIT_KEYS}`)
    this.box.addEventListener("keydown", (event) => this.key(event))
    this.foot = element("div", "wb-edit-foot", root)
    this.buildLinkPanel()
    this.status = element("div", "wb-status", root)
    this.status.setAttribute("aria-live", "polite")
  }

  // The player's map

  // Edit the map of the first player on the model's clock, if any. If a lab has several views, use the player in the same view.
  findPlayer() {
    const players = [...(globalThis.workbenchClocks?.get(this.model.get("clock")) ?? [])].filter((player) => !player.isGone)
    if (this.isGone || this.player || !players.length) return
    // A rendered element is in the page a moment later.
    if (![this, ...players].every(({ root }) => root.isConnected)) return void setTimeout(() => this.findPlayer(), SETTLED_MS)
    const lab = this.root.closest(".wb-lab")
    const found = players.find((player) => player.root.closest(".wb-lab") === lab)
    if (!found) return
    this.player = found
    this.isEditing = false
    this.box.hidden = true
    this.modes = element("span", "wb-modes", found.slot)
    this.modes.setAttribute("role", "group")
    this.modes.setAttribute("aria-label", "What the mouse does on the map")
    this.watchButton = button(this.modes, "Watch", "Watch the run: click a node to inspect it", () => this.setMode(false))
    this.editButton = button(this.modes, "Edit", "Edit the network: drag, add, link and erase nodes", () => this.setMode(true))
    element("p", "wb-hint", this.root, "Press Edit above the map to drag, add, link and erase nodes there.")
    found.slot.append(this.bar)
    found.belowMap.append(this.foot)
    found.PlainMap ??= found.map.constructor
    this.map = found.useMap((player, box) => new (editable(found.PlainMap))(player, box, this))
    found.mapBox.addEventListener("keydown", (event) => this.isEditing && this.key(event))
    found.onPick = (node) => this.pick(node < 0 ? [] : [found.plan.id[node]], false)
    found.onFeed = () => this.compareLater()
    this.setMode(false)
    this.relayer()
  }

  setMode(isEditing) {
    const { player } = this
    this.isEditing = isEditing
    player.chips.classList.toggle("wb-editing", isEditing)
    this.watchButton.setAttribute("aria-pressed", !isEditing)
    this.editButton.setAttribute("aria-pressed", isEditing)
    this.bar.hidden = this.foot.hidden = !isEditing
    ;(isEditing ? this.foot : this.root).append(this.status)
    player.mapBox.setAttribute("aria-label", isEditing ? `Network: ${EDIT_KEYS}` : player.mapLabel)
    if (isEditing) player.pause()
    else this.escape()
    this.writeStatus()
    this.showNetwork()
    player.resize()
  }

  // A run of the edited network usually arrives at once. If no run arrives, show the network without a run.
  compareLater() {
    clearTimeout(this.comparing)
    this.comparing = setTimeout(() => !this.isGone && this.showNetwork(), WAIT_FOR_RUN_MS)
  }

  // Show the network on the player's map while the network is edited and has no run yet, or has nodes that move: an edit
  // changes the positions at which they begin. Otherwise show the run.
  showNetwork() {
    const { player, map, picture } = this
    if (!player?.picture || !picture) return
    const isOther = picture.network != player.picture.network || player.picture.plan.tracks
    const shown = this.isEditing && isOther ? picture : player.picture
    if (map.picture === shown) return
    map.feed(shown)
    if (shown === picture) this.relayer()
    player.wantPicture()
  }

  buildLinkPanel() {
    this.panel = element("div", "wb-link-panel", this.foot)
    this.panel.hidden = true
    this.sliders = ["ab", "ba"].map((way) => {
      const label = element("label", "", this.panel)
      const name = element("span", "", label)
      const slider = element("input", "", label)
      Object.assign(slider, { type: "range", min: 0, max: 100, step: 1 })
      const output = element("output", "", label)
      slider.addEventListener("input", () => this.slide(way))
      slider.addEventListener("keydown", () => (this.isByKey = true))
      slider.addEventListener("pointerdown", () => (this.isByKey = false))
      slider.addEventListener("change", () => (this.isByKey ? this.settleQuality() : this.sendQuality()))
      return { way, name, slider, output }
    })
    const both = element("label", "", this.panel)
    this.both = element("input", "", both)
    Object.assign(this.both, { type: "checkbox", checked: true })
    element("span", "", both, "same in both directions")
    button(this.panel, "Remove link", "Remove both directions of this link", () => this.erase([], [this.link]))
  }

  watch() {
    const { model, root } = this
    this.sizes = new ResizeObserver(() => this.resize())
    this.sizes.observe(root)
    watchThemes(this)
    for (const part of [root, ...root.querySelectorAll("button, input, [tabindex]")]) part.dataset.lmSuppressShortcuts = "true"
    this.heard = {
      "change:payload": () => this.feed(),
      "change:clock": () => this.findPlayer(),
      "change:roles": () => this.relayer(),
      "change:overlay": () => this.feedOverlay(),
      "change:picked": () => this.setPicked(model.get("picked")),
      "change:tool": () => this.setTool(model.get("tool"), false),
      "change:asks": () => this.writeAsks(),
      "change:history": () => this.writeHistory(),
      "change:message": () => this.writeStatus(),
      "change:is_error": () => this.writeStatus(),
    }
    for (const [name, act] of Object.entries(this.heard)) model.on(name, act)
    this.onPlayer = () => this.findPlayer()
    document.addEventListener("workbench-player", this.onPlayer)
    this.retheme()
    this.feedOverlay()
    this.setTool(this.tool, false)
    this.writeAsks()
    this.writeHistory()
  }

  dispose() {
    if (this.player?.picture && !this.player.isGone) this.setMode(false)
    this.isGone = true
    this.sizes.disconnect()
    for (const [name, act] of Object.entries(this.heard)) this.model.off(name, act)
    document.removeEventListener("workbench-player", this.onPlayer)
    for (const part of [this.modes, this.bar, this.foot]) part?.remove()
    this.root.textContent = ""
  }

  // Methods that the map calls, as it calls the methods of a player

  isOn() {
    return true
  }

  colour(name) {
    return this.picture.colours[name][this.isDark]
  }

  fileName() {
    return "network"
  }

  wantPicture() {
    if (this.isWanted) return
    if (this.player) return this.player.wantPicture()
    this.isWanted = true
    requestAnimationFrame(() => {
      this.isWanted = false
      if (!this.isGone && this.picture && !this.player) this.map.paint()
    })
  }

  retheme() {
    if (takeTheme(this)) this.wantPicture()
  }

  resize() {
    const width = this.box.clientWidth
    if (!width || !this.picture || this.player) return
    const height = Math.round(clamp(0.62 * width, 220, Math.max(260, 0.55 * window.innerHeight)))
    this.box.style.height = `${height}px`
    if (width != this.map.width || height != this.map.height) this.map.resize(width, height)
  }

  // Messages from the kernel

  feed() {
    const data = this.model.get("payload")
    if (!data?.byteLength) return
    this.picture = readPayload(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength))
    if (this.player) this.compareLater()
    else {
      this.map.feed(this.picture)
      this.relayer()
      this.resize()
    }
    this.writePanel()
    this.writeStatus()
  }

  // Make a layer of the roles of nodes, in the form of the layers of a run.
  relayer() {
    if (!this.picture || this.map.picture !== this.picture) return
    const { node_level, roles } = this.picture
    const known = this.model.get("roles").filter(([id, role]) => this.map.placeOf(id) >= 0 && roles[role])
    const names = Object.keys(roles)
    const nodes = known.map(([id]) => this.map.placeOf(id))
    const look = known.map(([, role]) => names.indexOf(role))
    const [from, until] = [new Uint32Array(nodes.length), new Uint32Array(nodes.length).fill(0xffffffff)] // at any time
    const looks = names.map((name) => roles[name])
    this.map.relayer({ name: "roles", mark: "node", level: node_level, looks, is_drawn: true, has_nodes: true, table: { from, until, node: nodes, look } })
  }

  // Take the paths and jammers of the model, of which the map changes a copy while one of them is dragged.
  feedOverlay() {
    clearTimeout(this.settlingOverlay)
    this.overlay = structuredClone(this.model.get("overlay") ?? [])
    this.wantPicture()
  }

  setPicked(ids) {
    this.picked = ids
    if (ids.length) this.link = null
    this.selectInPlayer()
    this.writePanel()
    for (const ask of this.asks.children) ask.disabled = !ids.length
    this.writeStatus()
    this.wantPicture()
  }

  writeAsks() {
    this.asks.textContent = ""
    for (const name of this.model.get("asks").filter((name) => ASKED[name])) {
      const [text, tip] = ASKED[name]
      button(this.asks, text, tip, () => this.send({ kind: "ask", do: name, nodes: this.picked })).disabled = !this.picked.length
    }
  }

  writeHistory() {
    const { undo, redo } = this.model.get("history")
    this.hasHistory = undo !== undefined
    this.history.hidden = !this.hasHistory
    this.undoButton.disabled = !undo
    this.redoButton.disabled = !redo
  }

  writeStatus() {
    const isError = this.model.get("is_error")
    const sentences = [this.model.get("message"), ...(isError || !this.picture ? [] : this.picture.notes)]
    const { picked, map } = this
    if (picked.length == 1 && map.plan && map.placeOf(picked[0]) >= 0 && !isError && this.isEditing) {
      const place = map.placeOf(picked[0])
      sentences.unshift(`node ${picked[0]} at (${map.plan.x[place].toFixed(2)}, ${map.plan.y[place].toFixed(2)}) m`)
    } else if (this.tool == "waypoint" && !picked.length && this.isEditing && !isError) {
      sentences.unshift("select a node, then click the places to which it moves")
    } else if (picked.length > 1) sentences.unshift(`${picked.length} nodes selected`)
    this.status.textContent = sentences.filter(Boolean).join(" · ")
    this.status.classList.toggle("wb-error", isError)
  }

  // If a single node is selected, select it in the player, too.
  selectInPlayer() {
    const { player, picked } = this
    if (!player?.picture || !this.isEditing) return
    player.selection.node = picked.length == 1 ? player.plan.id.indexOf(picked[0]) : -1
  }

  // Actions of the user

  // Send an edit to the kernel, after a change of a link's quality that has not been sent yet.
  send(edit) {
    this.sendQuality()
    this.model.send(edit)
  }

  // Select nodes by their numbers. Nodes that the player has selected are selected there already.
  pick(ids, isOwn = true) {
    this.link = null
    if (!isOwn && areEqual(ids, this.picked)) return
    this.setPicked(ids)
    this.model.set("picked", ids)
    this.model.save_changes()
  }

  pickLink(pair) {
    this.sendQuality()
    if (this.picked.length) this.pick([])
    this.link = pair
    this.writePanel()
    this.wantPicture()
  }

  setTool(name, isOwn = true) {
    this.tool = name
    this.map.from = null
    for (const [tool, pressed] of this.tools) pressed.setAttribute("aria-pressed", tool == name)
    this.map.box.style.cursor = ""
    this.writeStatus()
    this.wantPicture()
    if (!isOwn) return
    this.model.set("tool", name)
    this.model.save_changes()
  }

  addAt([x, y]) {
    this.send({ kind: "add", x: toCentimetres(x), y: toCentimetres(y) })
  }

  addWaypoint([x, y]) {
    if (this.picked.length) this.send({ kind: "add_waypoint", nodes: this.picked, x: toCentimetres(x), y: toCentimetres(y) })
  }

  // Send an edit of a path or a jammer. If the kernel refuses it, the map shows the previous state again.
  sendOverlay(edit) {
    this.send(edit)
    clearTimeout(this.settlingOverlay)
    this.settlingOverlay = setTimeout(() => !this.isGone && this.feedOverlay(), WAIT_FOR_KERNEL_MS)
  }

  join(links) {
    const isThere = links.length == 1 && this.map.linkOf(...links[0]) >= 0
    if (!isThere) this.send({ kind: "join", links })
    this.pickLink(links[0])
  }

  erase(nodes, links) {
    if (nodes.length || links.length) this.send({ kind: "erase", nodes, links })
    this.link = null
    this.writePanel()
  }

  sendMoved(ids) {
    const { plan } = this.map
    const known = ids.filter((id) => this.map.placeOf(id) >= 0)
    const of = (column) => known.map((id) => column[this.map.placeOf(id)])
    this.send({ kind: "move", nodes: known, x: of(plan.x), y: of(plan.y) })
    this.writeStatus()
  }

  // The selected link

  writePanel() {
    const link = this.link && this.map.plan ? this.map.linkOf(...this.link) : -1
    this.panel.hidden = link < 0
    if (link < 0) return
    const { plan } = this.map
    const [a, b] = [plan.id[plan.a[link]], plan.id[plan.b[link]]]
    this.link = [a, b]
    for (const { way, name, slider, output } of this.sliders) {
      name.textContent = way == "ab" ? `${a} → ${b}` : `${b} → ${a}`
      slider.setAttribute("aria-label", `delivery ratio ${name.textContent}, in percent`)
      slider.value = plan[way][link]
      output.textContent = plan[way][link] ? `${plan[way][link]} %` : "none"
    }
    this.both.checked = plan.ab[link] == plan.ba[link]
  }

  slide(way) {
    const link = this.map.linkOf(...this.link)
    const { plan, picture } = this.map
    const value = Number(this.sliders.find((one) => one.way == way).slider.value)
    for (const one of this.sliders) {
      if (one.way != way && !this.both.checked) continue
      one.slider.value = value
      one.output.textContent = value ? `${value} %` : "none"
      this.changed = { ...this.changed, a: this.link[0], b: this.link[1], [one.way]: value / 100 }
      if (link >= 0) plan[one.way][link] = value
    }
    if (link >= 0) plan.shade[link] = Math.round(((picture.link_shades[0].length - 1) * Math.max(plan.ab[link], plan.ba[link])) / 100)
    this.map.isStill = false
    this.wantPicture()
  }

  // Send the quality soon, so that a key that is pressed repeatedly makes one change.
  settleQuality() {
    clearTimeout(this.settlingQuality)
    this.settlingQuality = setTimeout(() => this.sendQuality(), SETTLED_MS)
  }

  sendQuality() {
    const { changed } = this
    this.changed = null
    if (changed) this.model.send({ kind: "quality", ...changed })
  }

  // Keys

  key(event) {
    if (event.target.matches("input") && event.key != "Escape") return
    const act = this.actOf(event)
    if (!act || event.altKey || (event.target.matches("button") && event.key == " ")) return
    event.preventDefault()
    event.stopPropagation()
    act()
  }

  actOf(event) {
    const { key, shiftKey } = event
    if (event.ctrlKey || event.metaKey) {
      if (!this.hasHistory || !["z", "y"].includes(key.toLowerCase())) return null
      return () => this.send({ kind: key.toLowerCase() == "y" || shiftKey ? "redo" : "undo" })
    }
    if (ARROWS[key]) return () => this.nudge(ARROWS[key], shiftKey)
    return {
      "+": () => this.map.zoom(1.5),
      "=": () => this.map.zoom(1.5),
      "-": () => this.map.zoom(1 / 1.5),
      0: () => this.map.reset(),
      n: () => this.next(1),
      p: () => this.next(-1),
      N: () => this.next(1, true),
      P: () => this.next(-1, true),
      a: () => this.addAt(this.map.groundAt(this.map.width / 2, this.map.height / 2)),
      l: () => this.picked.length > 1 && this.join(this.picked.slice(1).map((id, i) => [this.picked[i], id])),
      Delete: () => this.erase(this.picked, this.link ? [this.link] : []),
      Backspace: () => this.erase(this.picked, this.link ? [this.link] : []),
      Escape: () => this.escape(),
    }[key]
  }

  escape() {
    this.map.act = null
    this.map.letGo(false)
    this.setTool("select")
    this.pick([])
  }

  next(direction, isMore = false) {
    const { id } = this.map.plan
    const last = this.picked.length ? this.map.placeOf(this.picked[this.picked.length - 1]) : direction > 0 ? -1 : 0
    const found = id[(last + direction + id.length) % id.length]
    this.pick(isMore ? [...this.picked.filter((one) => one != found), found] : [found])
  }

  nudge([dx, dy], isFine) {
    if (!this.picked.length) {
      this.map.left -= 40 * dx
      this.map.top += 40 * dy
      return this.map.lay()
    }
    const step = (isFine ? 0.1 : 1) * STEP * this.map.plan.spacing
    this.map.shift(this.picked, step * dx, step * dy)
    this.writeStatus()
    clearTimeout(this.settling)
    const ids = this.picked
    this.settling = setTimeout(() => this.sendMoved(ids), SETTLED_MS)
  }
}

function accentOf({ isDark }) {
  return isDark ? "#56B4E9" : "#0072B2"
}

function toCentimetres(metres) {
  return Math.round(100 * metres) / 100
}

// Return whether most nodes of two networks have the same numbers and positions.
function areAlike(one, other) {
  const places = new Map(Array.from(one.id, (id, i) => [id, i]))
  let same = 0
  for (let i = 0; i < other.id.length; i++) {
    const place = places.get(other.id[i])
    if (place !== undefined && Math.abs(one.x[place] - other.x[i]) < 0.02 && Math.abs(one.y[place] - other.y[i]) < 0.02) same++
  }
  return same > 0.5 * Math.max(one.id.length, other.id.length)
}

function render({ model, el }) {
  const root = element("div", "", el)
  const editor = new NetworkEditor(root, model)
  root.workbenchEditor = editor
  return () => editor.dispose()
}
export default { render }
