// The map on which a network is composed: the player's map with tools. An edit is drawn at once and sent to the kernel;
// the network that the kernel sends back replaces what was drawn.
//
// A dragged node and its links are painted on the upper canvas, so that the others need not be painted again.

const TOOLS = [
  ["select", "Select", "Select: click a node or a link, drag nodes (their links stay), Shift adds to the picked ones and draws a frame"],
  ["node", "+ Node", "Add nodes: click where one should be"],
  ["link", "+ Link", "Add links: drag from node to node, or click one after the other"],
  ["erase", "Erase", "Erase: click a node or a link"],
]
const ASKED = {
  sink: ["Sink", "Make the picked nodes sinks, or no longer"],
  source: ["Source", "Make the picked nodes sources, or no longer"],
  fail: ["Fail", "Let the picked nodes fail, or no longer"],
  subscribe: ["Subscribe", "Let the picked nodes subscribe"],
  publish: ["Publish", "Let the picked nodes publish"],
}
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }
const STEP = 0.1 // of the distance between neighbors: how far an arrow key moves a node
const SETTLED_MS = 300
const AWAY = -1e6
const CLICK_PX = 4

class EditMap extends NetworkMap {
  constructor(editor, box) {
    super(editor, box)
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
    if (this.held) this.holdAgain()
    if (!isLike) return
    this.fit()
    ;[this.isZoomed, this.px_m, this.left, this.top] = [isZoomed, ...section]
    this.lay()
    if (!this.isZoomed && !this.fills()) this.reset()
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

  relayer(layers) {
    layers.forEach(prepareLayer)
    this.order = layers
    this.shown = null
    this.player.wantPicture()
  }

  placeOf(id) {
    return this.index.get(id) ?? -1
  }

  linkOf(a, b) {
    const { plan } = this
    const [one, other] = [this.placeOf(a), this.placeOf(b)].sort((x, y) => x - y)
    for (let i = 0; i < plan.a.length; i++) if (plan.a[i] == one && plan.b[i] == other) return i
    return -1
  }

  // Dragged nodes

  hold(ids) {
    this.held = { ids, dx: 0, dy: 0 }
    this.holdAgain()
  }

  holdAgain() {
    const { held, plan } = this
    held.places = held.ids.map((id) => this.placeOf(id)).filter((place) => place >= 0)
    const isHeld = new Set(held.places)
    const rows = Array.from(plan.a.keys())
    held.links = rows.filter((i) => isHeld.has(plan.a[i]) || isHeld.has(plan.b[i]))
    const others = rows.filter((i) => !isHeld.has(plan.a[i]) && !isHeld.has(plan.b[i]))
    const [a, b, shade] = [plan.a, plan.b, plan.shade].map((column) => others.map((i) => column[i]))
    held.rest = { ...plan, a, b, shade }
    this.isStill = false
    this.shown = null
    this.player.wantPicture()
  }

  dragTo([x, y]) {
    this.held.dx = (x - this.begun[0]) / this.px_m
    this.held.dy = (this.begun[1] - y) / this.px_m
    this.player.writeDragged(this.held)
    this.player.wantPicture()
  }

  // End dragging; return whether nodes were moved.
  letGo(isPutDown) {
    const { held } = this
    this.held = null
    this.isStill = false
    this.shown = null
    if (held && isPutDown) this.shift(held.ids, held.dx, held.dy)
    this.player.wantPicture()
  }

  shift(ids, dx, dy) {
    const { x, y } = this.plan
    for (const place of ids.map((id) => this.placeOf(id)).filter((one) => one >= 0)) {
      x[place] = toCentimetres(x[place] + dx)
      y[place] = toCentimetres(y[place] + dy)
    }
    this.lay()
  }

  // Painting

  paintStill() {
    const { plan } = this
    if (this.held) this.plan = this.held.rest
    super.paintStill()
    this.plan = plan
  }

  paintStates() {
    const places = this.held?.places ?? []
    for (const i of places) this.px[i] = AWAY
    super.paintStates()
    for (const i of places) {
      this.px[i] = this.left + this.px_m * (this.plan.x[i] + this.held.dx)
      this.py[i] = this.top - this.px_m * (this.plan.y[i] + this.held.dy)
    }
  }

  paintMoving() {
    super.paintMoving()
    const brush = this.brushes[2]
    const accent = this.player.accent()
    if (this.held) this.paintHeld(brush)
    const link = this.player.link && this.linkOf(...this.player.link)
    if (link >= 0 && this.player.link) {
      brush.strokes(accent, 3.5, { alpha: 0.8, cap: "round" })
      brush.segment(...this.endsOf(link))
      brush.flushStrokes()
    }
    const radius = Math.max(0.75 * this.node, 7)
    brush.shapes(null, accent, 2.2)
    const ringed = [...this.player.picked, ...(this.from === null ? [] : [this.from])]
    for (const place of ringed.map((id) => this.placeOf(id))) {
      if (place >= 0 && this.isInSight(place)) brush.shape("circle", this.px[place], this.py[place], radius)
    }
    brush.flushShapes()
    this.paintAct(brush, accent)
  }

  paintHeld(brush) {
    const { held, plan } = this
    const shades = this.picture.link_shades[this.isDark]
    for (const [kind, some] of grouped(held.links, (i) => plan.shade[i])) {
      brush.strokes(shades[kind], 1.3)
      for (const i of some) brush.segment(...this.endsOf(i))
      brush.flushStrokes()
    }
    for (const i of held.places) {
      const look = this.nodeLooks?.[i] ?? this.picture.plain_node
      const isCross = look.marker == "x"
      brush.shapes(isCross ? null : look.colour[this.isDark], isCross ? look.colour[this.isDark] : this.outline, isCross ? 2.8 : 1.1)
      brush.shape(look.marker, this.px[i], this.py[i], lengthOf(look, this.node) / 2)
      brush.flushShapes()
    }
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
    if (event.button > 0) return
    super.pointerdown(event)
    if (this.pointers.size > 1) {
      this.act = { kind: "pan" }
      return this.letGo(false)
    }
    this.here = null
    this.act = this.begin(this.nodeAt(this.begun), event)
  }

  begin(node, event) {
    const { tool, picked } = this.player
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
    this.player.wantPicture()
  }

  pointerup(event) {
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
    const { player } = this
    if (act.kind == "drag") {
      this.letGo(true)
      player.sendMoved(act.ids)
    } else if (act.kind == "rubber") {
      const to = this.nodeAt(where)
      if (to !== null && to != act.from) player.join([[act.from, to]])
    } else if (act.kind == "frame") {
      const [x0, x1] = [this.begun[0], where[0]].sort((one, other) => one - other)
      const [y0, y1] = [this.begun[1], where[1]].sort((one, other) => one - other)
      const inside = Array.from(this.plan.id).filter((_, i) => this.px[i] >= x0 && this.px[i] <= x1 && this.py[i] >= y0 && this.py[i] <= y1)
      player.pick([...new Set([...player.picked, ...inside])])
    }
  }

  click(where, event) {
    const { player } = this
    const node = this.nodeAt(where)
    const isMore = event.shiftKey || event.ctrlKey || event.metaKey
    if (player.tool == "erase") return this.eraseAt(where, node)
    if (player.tool == "link") return this.joinAt(node)
    if (player.tool == "node" && node === null) return player.addAt(this.groundAt(...where))
    if (node !== null) {
      const others = player.picked.filter((one) => one != node)
      return player.pick(isMore ? (others.length < player.picked.length ? others : [...others, node]) : [node])
    }
    const link = this.linkAt(where)
    if (link >= 0) return player.pickLink([this.plan.id[this.plan.a[link]], this.plan.id[this.plan.b[link]]])
    if (!isMore) player.pick([])
  }

  eraseAt(where, node) {
    if (node !== null) return this.player.erase([node], [])
    const link = this.linkAt(where)
    if (link >= 0) this.player.erase([], [[this.plan.id[this.plan.a[link]], this.plan.id[this.plan.b[link]]]])
  }

  joinAt(node) {
    const { from } = this
    this.from = node !== null && from === null ? node : null
    if (from !== null && node !== null && from != node) this.player.join([[from, node]])
  }

  hover(where) {
    super.hover(where)
    const { tool } = this.player
    const isOnNode = this.nodeAt(where) !== null
    if (tool == "node" && !isOnNode) this.box.style.cursor = "copy"
    else if (tool == "link") this.box.style.cursor = "crosshair"
    else if (isOnNode || (tool != "node" && this.linkAt(where) >= 0)) this.box.style.cursor = "pointer"
  }

  dblclick(event) {
    if (this.player.tool == "select" && this.nodeAt(this.at(event)) === null) this.reset()
  }
}

class NetworkEditor {
  isDark // 1 or 0; undefined until takeTheme() has set it

  constructor(root, model) {
    this.root = root
    this.model = model
    this.selection = { node: -1, path: null, frame: -1 } // always empty; the player's map requires it
    this.tick = 0
    this.link = null
    this.picked = model.get("picked")
    this.tool = model.get("tool")
    root.classList.add("wb-player", "wb-network")
    this.build()
    this.watch()
    this.feed()
  }

  build() {
    const { root } = this
    this.bar = element("div", "wb-tools", root)
    this.bar.setAttribute("role", "toolbar")
    this.bar.setAttribute("aria-label", "Tools of the map")
    this.tools = TOOLS.map(([name, text, said]) => [name, button(this.bar, text, said, () => this.setTool(name))])
    this.asks = element("span", "wb-asks", this.bar)
    this.history = element("span", "wb-history", this.bar)
    this.undoButton = button(this.history, "↶", "Undo", () => this.send({ kind: "undo" }))
    this.redoButton = button(this.history, "↷", "Redo", () => this.send({ kind: "redo" }))
    this.box = element("div", "wb-map", root)
    this.map = new EditMap(this, this.box)
    this.box.setAttribute("aria-label", "Network: n and p pick the next and the previous node, Shift picks one more, arrows move what is picked, Delete removes it, a adds a node, l links the picked ones")
    this.buildLinkPanel()
    this.status = element("div", "wb-status", root)
    this.status.setAttribute("aria-live", "polite")
  }

  buildLinkPanel() {
    this.panel = element("div", "wb-link-panel", this.root)
    this.panel.hidden = true
    this.sliders = ["ab", "ba"].map((way) => {
      const label = element("label", "", this.panel)
      const name = element("span", "", label)
      const slider = element("input", "", label)
      Object.assign(slider, { type: "range", min: 0, max: 100, step: 1 })
      const told = element("output", "", label)
      slider.addEventListener("input", () => this.slide(way))
      slider.addEventListener("keydown", () => (this.isByKey = true))
      slider.addEventListener("pointerdown", () => (this.isByKey = false))
      slider.addEventListener("change", () => (this.isByKey ? this.settleQuality() : this.sendQuality()))
      return { way, name, slider, told }
    })
    const both = element("label", "", this.panel)
    this.both = element("input", "", both)
    Object.assign(this.both, { type: "checkbox", checked: true })
    element("span", "", both, "both alike")
    button(this.panel, "Remove link", "Remove both directions of this link", () => this.erase([], [this.link]))
  }

  watch() {
    const { model, root } = this
    this.sizes = new ResizeObserver(() => this.resize())
    this.sizes.observe(root)
    watchThemes(this)
    root.addEventListener("keydown", (event) => this.key(event))
    for (const part of [root, ...root.querySelectorAll("button, input, [tabindex]")]) part.dataset.lmSuppressShortcuts = "true"
    this.heard = {
      "change:payload": () => this.feed(),
      "change:roles": () => this.relayer(),
      "change:picked": () => this.setPicked(model.get("picked")),
      "change:tool": () => this.setTool(model.get("tool"), false),
      "change:asks": () => this.writeAsks(),
      "change:history": () => this.writeHistory(),
      "change:message": () => this.writeStatus(),
      "change:is_error": () => this.writeStatus(),
    }
    for (const [name, act] of Object.entries(this.heard)) model.on(name, act)
    this.retheme()
    this.setTool(this.tool, false)
    this.writeAsks()
    this.writeHistory()
  }

  dispose() {
    this.isGone = true
    this.sizes.disconnect()
    for (const [name, act] of Object.entries(this.heard)) this.model.off(name, act)
    this.root.textContent = ""
  }

  // Methods that the map calls, as it does those of a player

  isOn() {
    return true
  }

  colour(name) {
    return this.picture.colours[name][this.isDark]
  }

  accent() {
    return this.isDark ? "#56B4E9" : "#0072B2"
  }

  fileName() {
    return "network"
  }

  wantPicture() {
    if (this.isWanted) return
    this.isWanted = true
    requestAnimationFrame(() => {
      this.isWanted = false
      if (!this.isGone && this.picture) this.map.paint()
    })
  }

  retheme() {
    if (takeTheme(this)) this.wantPicture()
  }

  resize() {
    const width = this.box.clientWidth
    if (!width || !this.picture) return
    const height = Math.round(clamp(0.62 * width, 220, Math.max(260, 0.55 * window.innerHeight)))
    this.box.style.height = `${height}px`
    if (width != this.map.width || height != this.map.height) this.map.resize(width, height)
  }

  // Messages from the kernel

  feed() {
    const data = this.model.get("payload")
    if (!data?.byteLength) return
    this.picture = readPayload(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength))
    this.map.feed(this.picture)
    this.relayer()
    this.resize()
    this.writePanel()
    this.writeStatus()
  }

  // Make layers as those of a run: the roles of nodes, and their numbers.
  relayer() {
    if (!this.picture) return
    const { node_level, roles, colours, plan } = this.picture
    const known = this.model.get("roles").filter(([id, role]) => this.map.placeOf(id) >= 0 && roles[role])
    const names = Object.keys(roles)
    const layerOf = (name, mark, level, looks, rows, columns) => {
      const spans = { from: new Uint8Array(rows), until: new Uint8Array(rows).fill(1) }
      return { name, mark, level, looks, is_drawn: true, has_nodes: mark == "node", is_detail: mark == "label", table: { ...spans, ...columns } }
    }
    const [node, look] = [known.map(([id]) => this.map.placeOf(id)), known.map(([, role]) => names.indexOf(role))]
    const shown = layerOf("roles", "node", node_level, names.map((name) => roles[name]), known.length, { node, look })
    const every = Array.from(plan.id.keys())
    const number = { colour: colours.text, size: -1, alpha: 1 }
    const numbers = layerOf("numbers", "label", 2 * node_level, [number], every.length, { node: every, text: every })
    numbers.words = Array.from(plan.id, String)
    this.map.relayer([shown, numbers])
  }

  setPicked(ids) {
    this.picked = ids
    if (ids.length) this.link = null
    this.writePanel()
    for (const one of this.asks.children) one.disabled = !ids.length
    this.writeStatus()
    this.wantPicture()
  }

  writeAsks() {
    this.asks.textContent = ""
    for (const name of this.model.get("asks").filter((one) => ASKED[one])) {
      const [text, said] = ASKED[name]
      button(this.asks, text, said, () => this.send({ kind: "ask", do: name, nodes: this.picked })).disabled = !this.picked.length
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
    const said = [this.model.get("message"), ...(isError || !this.picture ? [] : this.picture.notes)]
    const { picked, map } = this
    if (picked.length == 1 && map.placeOf(picked[0]) >= 0 && !isError) {
      const place = map.placeOf(picked[0])
      said.unshift(`node ${picked[0]} at (${map.plan.x[place].toFixed(2)}, ${map.plan.y[place].toFixed(2)}) m`)
    } else if (picked.length > 1) said.unshift(`${picked.length} nodes picked`)
    this.status.textContent = said.filter(Boolean).join(" · ")
    this.status.classList.toggle("wb-error", isError)
  }

  writeDragged({ ids, dx, dy }) {
    const { x, y } = this.map.plan
    const place = this.map.placeOf(ids[0])
    const to = ids.length == 1 && place >= 0 ? `node ${ids[0]} to (${(x[place] + dx).toFixed(2)}, ${(y[place] + dy).toFixed(2)}) m` : `${ids.length} nodes`
    this.status.textContent = `${to}; links stay as they are`
  }

  // Actions of the user

  // Send an edit to the kernel, after a change of a link's quality that has not been sent yet.
  send(edit) {
    this.sendQuality()
    this.model.send(edit)
  }

  pick(ids) {
    this.link = null
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

  setTool(name, isTold = true) {
    this.tool = name
    this.map.from = null
    for (const [one, made] of this.tools) made.setAttribute("aria-pressed", one == name)
    this.box.style.cursor = ""
    this.wantPicture()
    if (!isTold) return
    this.model.set("tool", name)
    this.model.save_changes()
  }

  addAt([x, y]) {
    this.send({ kind: "add", x: toCentimetres(x), y: toCentimetres(y) })
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
    for (const { way, name, slider, told } of this.sliders) {
      name.textContent = way == "ab" ? `${a} → ${b}` : `${b} → ${a}`
      slider.setAttribute("aria-label", `delivery ratio ${name.textContent}, in percent`)
      slider.value = plan[way][link]
      told.textContent = plan[way][link] ? `${plan[way][link]} %` : "none"
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
      one.told.textContent = value ? `${value} %` : "none"
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
