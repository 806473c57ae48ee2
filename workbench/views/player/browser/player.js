// The player of a run. It has one time and one selection, which the map, the timeline, the curves, the panels, the
// inspector and the table of messages show. Its elements remain when it shows another run.

const SPEEDS = [["0.125", "⅛ ×"], ["0.25", "¼ ×"], ["0.5", "½ ×"], ["1", "1 ×"], ["2", "2 ×"], ["4", "4 ×"], ["8", "8 ×"]]
const PACES = [["paced", "paced by traffic"], ["even", "even time"]]
const LEAD_S = 5 // of playback before the first picture, played once when the player comes into sight
const MOST_NUMBERED = 60 // nodes whose numbers are on the map at first
const REDUCED_MOTION = matchMedia("(prefers-reduced-motion: reduce)")
const KEYS = [
  ["Space", "play, pause"],
  ["← →", "one message back, on"],
  ["m", "to the next interesting moment"],
  ["Home, End", "to the beginning, to the end"],
  ["+ −", "zoom in, out"],
  ["0", "show the whole network"],
  ["← → ↑ ↓ on the map", "the next node in this direction"],
  ["n, p on the map", "next node, previous node"],
  ["s on the map", "save the map as a picture"],
  ["Escape", "select nothing"],
  ["?", "this list"],
]

class Player {
  isDark // 1 or 0; undefined until takeTheme() has set it
  known = null // names of the layers' buttons that a run has had
  group = null // players that share a clock
  onSelect = null // called with the selection
  onPick = null // called with the index of a node that the user selects, or -1
  onFeed = null // called when another run is shown
  brushed = null // the set of messages that the user selects in a chart, or null
  PlainMap = null // the class of the map without an editor

  constructor(root) {
    this.root = root
    this.selection = { node: -1, path: null, frame: -1 }
    this.hidden = null
    this.speed = 1
    this.isEven = false
    this.isPlaying = false
    root.classList.add("wb-player")
    this.build()
    this.watch()
  }

  // Elements

  build() {
    const { root } = this
    root.textContent = ""
    element("style", "", root, STYLE)
    const header = element("div", "wb-header", root)
    this.heading = element("div", "wb-heading", header)
    const side = element("div", "wb-clock-box", header)
    this.clock = element("div", "wb-clock", side)
    this.clock.setAttribute("role", "timer")
    this.totals = element("div", "wb-totals", side)
    this.chips = element("div", "wb-chips", root)
    this.chips.setAttribute("role", "toolbar")
    this.chips.setAttribute("aria-label", "Layers")
    this.slot = element("span", "wb-slot", this.chips) // for the tools of an editor; see widgets/network/map.js
    this.stage = element("div", "wb-stage", root)
    const left = element("div", "wb-left", this.stage)
    this.mapBox = element("div", "wb-map", left)
    this.map = new NetworkMap(this, this.mapBox)
    this.mapBox.setAttribute("aria-label", this.mapLabel)
    this.belowMap = element("div", "", left)
    this.legend = element("div", "wb-legend", left)
    this.buildSide(element("aside", "wb-side", this.stage))
    this.buildControls(element("div", "wb-controls", root))
    this.followed = element("p", "wb-followed", root)
    this.followed.setAttribute("aria-live", "polite")
    this.timeline = new Timeline(this, root, "wb-timeline", "Messages in time, by node")
    this.below = element("div", "wb-below", root)
    this.below.addEventListener("pointerdown", () => this.root.focus({ preventScroll: true }))
    this.curves = []
    this.lanes = []
    this.notes = element("div", "wb-notes", root)
    this.links = element("div", "wb-links", root)
    this.links.hidden = true
    this.help = element("div", "wb-help", root)
    this.help.hidden = true
    this.help.innerHTML = `<h4>Keys</h4><table>${KEYS.map(([key, text]) => `<tr><td><kbd>${key}</kbd></td><td>${text}</td></tr>`).join("")}</table>`
  }

  get mapLabel() {
    return "Map of the run: arrow keys go from node to node, plus and minus zoom, 0 shows the whole network, s saves a picture"
  }

  // Replace the map by the one that `make(player, box)` returns.
  useMap(make) {
    const box = element("div", "wb-map")
    this.mapBox.replaceWith(box)
    this.mapBox = box
    box.dataset.lmSuppressShortcuts = "true"
    this.map = make(this, box)
    if (this.picture) this.map.feed(this.picture)
    this.resize()
    return this.map
  }

  buildSide(side) {
    const tabs = element("div", "wb-tabs", side)
    tabs.setAttribute("role", "tablist")
    this.pages = {}
    for (const [name, label] of [["node", "Node"], ["messages", "Messages"]]) {
      const tab = button(tabs, label, label, () => this.openPage(name))
      tab.setAttribute("role", "tab")
      const page = element("div", `wb-page wb-page-${name}`, side)
      page.setAttribute("role", "tabpanel")
      page.setAttribute("aria-label", label)
      page.tabIndex = 0 // the keyboard scrolls it
      this.pages[name] = { tab, page }
    }
    this.inspector = this.pages.node.page
    this.inspector.setAttribute("aria-live", "polite")
    this.messages = new MessageTable(this, this.pages.messages.page)
    this.openPage("node")
  }

  buildControls(bar) {
    button(bar, "❙◀", "To the beginning", () => this.jump(0)).dataset.name = "start"
    button(bar, "◀", "One message back", () => this.step(-1)).dataset.name = "back"
    this.playButton = button(bar, "▶ Play", "Play", () => (this.isPlaying ? this.pause() : this.play()))
    this.playButton.setAttribute("aria-label", "Play")
    this.playButton.className = "wb-primary"
    this.playButton.dataset.name = "play"
    button(bar, "▶", "One message on", () => this.step(1)).dataset.name = "forward"
    this.momentButton = button(bar, "★", "To the next interesting moment", () => this.jumpToMoment())
    this.momentButton.dataset.name = "moment"
    this.slider = element("input", "", bar)
    Object.assign(this.slider, { type: "range", min: 0, max: 2000, step: 1, value: 0 })
    this.slider.setAttribute("aria-label", "Time")
    this.slider.addEventListener("input", () => this.jump(this.timeOf((this.slider.value / 2000) * this.playbackLength), false))
    this.speedChoice = this.choice(bar, "Speed", SPEEDS, "1", (value) => (this.speed = Number(value)))
    this.paceChoice = this.choice(bar, "Pace", PACES, "paced", (value) => {
      this.isEven = value == "even"
      this.wantPicture()
    })
    button(bar, "?", "Keys", () => (this.help.hidden = !this.help.hidden)).dataset.name = "help"
    if (this.isLinked) button(bar, "link", "A link to this moment", () => this.showLink()).dataset.name = "link"
  }

  // Whether the address of the page contains the moment and the layers of this player.
  get isLinked() {
    return this.root.dataset.linked !== undefined
  }

  // The moment and the visible layers, as the part of an address after #.
  get fragment() {
    const layers = this.picture.chips.map(({ name }) => name).filter((name) => this.isOn(name))
    return `t=${+this.time.toFixed(6)}&layers=${layers.map(encodeURIComponent).join(",")}`
  }

  // Show the moment and the layers in such a text. Names of layers that this run lacks are ignored.
  applyFragment(text) {
    const wanted = new URLSearchParams(text.replace(/^#/, ""))
    if (wanted.has("layers")) {
      const layers = new Set(wanted.get("layers").split(","))
      this.hidden = new Set(this.picture.chips.map(({ name }) => name).filter((name) => !layers.has(name)))
      this.map.shown = null
      this.writeChips()
      this.writeLegend()
    }
    const time = parseFloat(wanted.get("t"))
    if (Number.isFinite(time)) this.jump(time)
  }

  showLink() {
    this.links.hidden = !this.links.hidden
    this.links.textContent = ""
    const address = `${location.href.split("#")[0]}#${this.fragment}`
    for (const [label, text] of [
      ["Link to this moment", address],
      ["Line for slides and pages", `<iframe src="${address}" width="100%" height="760" style="border:0"></iframe>`],
    ]) {
      const row = element("label", "", this.links, label)
      const field = element("input", "", row)
      field.readOnly = true
      field.value = text
      field.setAttribute("aria-label", label)
      field.addEventListener("focus", () => field.select())
    }
    history.replaceState(null, "", address)
  }

  choice(parent, label, options, value, act) {
    const made = element("select", "", parent)
    made.setAttribute("aria-label", label)
    for (const [key, text] of options) element("option", "", made, text).value = key
    made.value = value
    made.addEventListener("change", () => act(made.value))
    return made
  }

  // Events of the page: size, theme, keys

  watch() {
    this.root.tabIndex = -1
    this.sizes = new ResizeObserver(() => this.resize())
    this.sizes.observe(this.root)
    watchThemes(this)
    this.root.addEventListener("keydown", (event) => this.key(event))
    // Jupyter's shortcuts for cells (arrows, space) must not take the player's keys, on whatever part has the focus.
    for (const part of [this.root, ...this.root.querySelectorAll("button, select, input, [tabindex]")])
      part.dataset.lmSuppressShortcuts = "true"
    this.retheme()
  }

  dispose() {
    this.pause()
    this.isGone = true
    this.sizes.disconnect()
    this.root.textContent = ""
    delete this.root.workbenchPlayer
  }

  retheme() {
    if (!takeTheme(this) || !this.picture) return
    for (const one of [this.timeline, ...this.curves, ...this.lanes]) [one.isStill, one.shown] = [false, null]
    for (const curves of this.curves) curves.feed(curves.curves)
    this.writeLegend()
    this.wantPicture()
  }

  fileName() {
    return `run-${writeTime(this.time)}s`
  }

  colour(name) {
    return this.picture.colours[name][this.isDark]
  }

  resize() {
    const width = this.root.clientWidth
    if (!this.picture || !width) return
    const isWide = width >= 760
    this.root.classList.toggle("wb-narrow", !isWide)
    this.root.classList.toggle("wb-small", width < 520)
    const mapWidth = this.mapBox.clientWidth
    const [x0, y0, x1, y1] = this.plan.box
    const least = isWide ? 240 : 150
    // In a lab, the map leaves room for the metrics and the controls in one screen.
    const share = this.root.closest(".wb-lab") ? (isWide ? 0.44 : 0.36) : isWide ? 0.44 : 0.5
    const most = clamp(share * window.innerHeight, least, isWide ? 560 : 420)
    const height = Math.round(clamp((mapWidth * (y1 - y0)) / (x1 - x0) + 40, least, most))
    this.mapBox.style.height = `${height}px`
    this.stage.style.setProperty("--wb-map-height", `${height}px`)
    if (mapWidth != this.map.width || height != this.map.height) this.map.resize(mapWidth, height)
    const room = this.timeline.box.clientWidth
    if (room != this.timeline.width) {
      this.timeline.resize(room, width < 520 ? 84 : 104)
      for (const one of this.curves) one.resize(room, 84)
      for (const one of this.lanes) one.resize(room)
    }
    this.wantPicture()
  }

  key(event) {
    if (event.target.matches("input, select, textarea") && event.key != "Escape") return
    const isOnMap = this.mapBox.contains(event.target)
    const acts = {
      " ": () => (this.isPlaying ? this.pause() : this.play()),
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      Home: () => this.jump(0),
      End: () => this.jump(this.duration),
      m: () => this.jumpToMoment(),
      "+": () => this.map.zoom(1.5),
      "=": () => this.map.zoom(1.5),
      "-": () => this.map.zoom(1 / 1.5),
      0: () => this.map.reset(),
      Escape: () => this.escape(),
      "?": () => (this.help.hidden = !this.help.hidden),
    }
    if (isOnMap) Object.assign(acts, this.mapKeys())
    if (event.key == " " && event.target.matches("button")) return
    if (!event.ctrlKey && !event.metaKey && !event.altKey && acts[event.key]) {
      event.preventDefault()
      event.stopPropagation()
      acts[event.key]()
    }
  }

  escape() {
    this.help.hidden = true
    this.selection = { node: -1, path: null, frame: -1 }
    this.brushed = null
    this.wantPicture()
  }

  // Key -> its action while the map has the focus.
  mapKeys() {
    const count = this.plan.x.length
    const { node } = this.selection
    const towards = (dx, dy) => () => this.pickNode(this.map.neighborOf(node, dx, dy))
    return {
      ArrowLeft: towards(-1, 0),
      ArrowRight: towards(1, 0),
      ArrowUp: towards(0, -1),
      ArrowDown: towards(0, 1),
      n: () => this.pickNode((node + 1) % count),
      p: () => this.pickNode((Math.max(node, 0) + count - 1) % count),
      s: () => this.map.save(),
    }
  }

  // Runs

  // Show another run. The first run of a protocol opens at an informative moment, later ones at the present time. A
  // preview shows a single moment until the whole run arrives; texts that it lacks stay as they are.
  feed(data) {
    const picture = readPayload(data)
    // Another protocol opens at its own first picture.
    const isNew = !this.picture
    const isOther = !isNew && picture.title.split(" on ")[0] != this.picture.title.split(" on ")[0]
    if (picture.is_preview && (isOther || !this.isWaitingAt(picture))) return
    const isFirst = isNew || isOther
    const isGoingOn = !isFirst && this.picture.now_s !== null && this.duration == picture.duration_s
    this.picture = picture
    this.plan = picture.plan
    this.duration = picture.duration_s
    this.playbackLength = picture.clock.moment[picture.clock.moment.length - 1]
    this.frames = picture.layers.find((layer) => layer.is_frames)
    if (isFirst) {
      this.time = picture.poster_s
      this.isUntouched = true
    }
    // A run in progress is shown at its newest moment until the user moves the time.
    if (picture.now_s !== null && this.isUntouched) this.time = picture.now_s
    this.time = Math.min(this.time, this.duration)
    if (!isGoingOn) this.timeRange = [0, this.duration]
    const nodes = this.plan.x.length
    if (isNew || this.selection.node >= nodes) this.selection.node = picture.picked
    if (!isGoingOn) this.selection.path = this.brushed = null
    if (!isGoingOn) this.selection.frame = -1
    this.moment = null
    this.momentButton.hidden = !picture.is_preview && !picture.moments.length
    this.hidden ??= new Set()
    this.known ??= new Set()
    picture.chips.splice(1, 0, { name: NUMBERS, is_on: nodes <= MOST_NUMBERED })
    for (const chip of picture.chips) if (!this.known.has(chip.name)) {
      this.known.add(chip.name)
      if (!chip.is_on) this.hidden.add(chip.name)
    }
    this.map.feed(picture)
    this.timeline.feed(picture)
    this.feedBelow()
    this.writeHeading()
    if (!picture.is_preview) {
      this.writeChips()
      this.writeLegend()
      this.messages.feed()
      this.notes.textContent = picture.notes.join(" ")
    }
    this.steppedTo = null
    this.resize()
    this.paint()
    this.onFeed?.()
    if (isFirst && this.isLinked && location.hash) this.applyFragment(location.hash)
    if (isFirst && picture.now_s === null && !REDUCED_MOTION.matches) this.playWhenInSight()
    this.fedAt = performance.now() // benchmarks/player.py asks for it
  }

  // Return whether a run is shown, paused at the moment of a preview.
  isWaitingAt({ poster_s: time, duration_s: duration }) {
    return this.picture && !this.isPlaying && Math.min(this.time, duration) == time
  }

  // Create as many boxes for curves and lanes as this run needs, and reuse existing ones.
  feedBelow() {
    const { curves, panels, layers } = this.picture
    while (this.curves.length > curves.length) this.curves.pop().box.remove()
    while (this.lanes.length > panels.length) this.lanes.pop().box.remove()
    while (this.curves.length < curves.length) this.curves.push(new CurvesBox(this, this.below, "wb-curves", "Counts in time"))
    while (this.lanes.length < panels.length) this.lanes.push(new LanesBox(this, this.below))
    for (const [i, box] of this.curves.entries()) box.feed(curves[i])
    for (const [i, box] of this.lanes.entries()) box.feed(panels[i], layers.filter((layer) => layer.panel == i))
    const room = this.timeline.width
    if (!room) return
    for (const box of this.curves) box.resize(room, 84)
    for (const box of this.lanes) box.resize(room)
  }

  isOn(name) {
    return !this.hidden.has(name)
  }

  writeHeading() {
    const { title, workload, numbers, is_preview: isPreview } = this.picture
    if (!isPreview) this.numbers = numbers.map(([name, number]) => `${escapeText(name)} <b>${escapeText(number)}</b>`).join(" · ")
    this.heading.innerHTML = `<h2>${escapeText(title)}</h2><p title="${escapeText(workload)}">${escapeText(workload)}</p><p${isPreview ? ' class="wb-before"' : ""}>${this.numbers}</p>`
    this.root.setAttribute("role", "region")
    this.root.setAttribute("aria-label", `${title}; press ? for the keys`)
  }

  writeChips() {
    while (this.chips.lastChild !== this.slot) this.chips.lastChild.remove()
    for (const { name } of this.picture.chips) {
      const chip = button(this.chips, name, `Show or hide: ${name}`, () => {
        if (!this.hidden.delete(name)) this.hidden.add(name)
        chip.setAttribute("aria-pressed", this.isOn(name))
        this.map.shown = null
        this.map.isStill &&= name != "links"
        this.timeline.isStill = false
        this.writeLegend()
        this.wantPicture()
      })
      chip.setAttribute("aria-label", name)
      chip.setAttribute("aria-pressed", this.isOn(name))
    }
    if (this.picture.paths.length) this.writePaths()
  }

  // The selected option of the message menu: the user's, or else the run's default.
  get chosenPath() {
    const { path } = this.selection
    if (path === null) return this.picture.is_newest ? "newest" : "none"
    return path == -1 ? "none" : `${path}`
  }

  // Write the menu of messages whose path can be shown: none, the newest, or one of them.
  writePaths() {
    const { paths } = this.picture
    const options = [["none", "follow no message"], ["newest", "follow the newest message"]]
    for (const [i, { label }] of paths.entries()) options.push([`${i}`, label])
    this.pathChoice = this.choice(this.chips, "The message that is followed", options, this.chosenPath, (value) => {
      this.brushed = null
      this.selection.path = value == "none" ? -1 : value == "newest" ? "newest" : Number(value)
      this.map.shown = null
      this.wantPicture()
    })
    this.pathChoice.className = "wb-way"
  }

  writeLegend() {
    const entries = new Map()
    const { layers, plain_node: plain } = this.picture
    entries.set(plain.label, swatch("node", plain, this.isDark))
    for (const layer of layers) {
      if (!layer.rows || !this.isOn(layer.name)) continue
      if (layer.scale) {
        const { label, low, high } = layer.scale
        entries.set(`${label}: ${low} to ${high}`, scaleSwatch(layer.scale, this.isDark))
      }
      for (const i of layer.used) {
        const look = layer.looks[i]
        if (!look.label || !(look.mark || layer.mark) || (look.chip && !this.isOn(look.chip))) continue
        if (!entries.has(look.label)) entries.set(look.label, swatch(look.mark || layer.mark, look, this.isDark))
      }
    }
    this.legend.innerHTML = [...entries].map(([label, drawn]) => `<span>${drawn}${escapeText(label)}</span>`).join("")
  }

  openPage(name) {
    this.openedPage = name
    for (const [key, { tab, page }] of Object.entries(this.pages)) {
      page.hidden = key != name
      tab.setAttribute("aria-selected", key == name)
    }
    if (this.picture) this.writeSide()
  }

  // Time

  get tick() {
    return Math.min(this.time, this.duration - 1e-6) / this.picture.tick_s
  }

  endOf(row) {
    const { value } = this.frames.table
    return value ? value[row] / 1e6 : this.frames.table.from[row] * this.picture.tick_s
  }

  momentOf(time) {
    const { clock } = this.picture
    return this.isEven ? (time / this.duration) * this.playbackLength : interpolate(clock.time, clock.moment, time)
  }

  timeOf(moment) {
    const { clock } = this.picture
    if (this.isEven) return Math.min((moment / this.playbackLength) * this.duration, this.duration)
    return interpolate(clock.moment, clock.time, moment)
  }

  // Play up to the first picture, once, as soon as at least half of the map is in sight. The user can interrupt it.
  // The map is watched from the time at which it has a size: in Voilà, an observer of an element that is not yet in the
  // page never reports that it has become visible.
  playWhenInSight() {
    const sizes = new ResizeObserver(() => {
      if (!this.mapBox.clientWidth) return
      sizes.disconnect()
      this.watchSight()
    })
    sizes.observe(this.mapBox)
  }

  watchSight() {
    const sight = new IntersectionObserver(([entry]) => {
      if (this.isGone || !this.isUntouched) return sight.disconnect()
      if (!entry.isIntersecting || entry.intersectionRatio < 0.5) return
      sight.disconnect()
      if (this.isPlaying || (this.group && [...this.group][0] !== this)) return
      const poster = this.time
      this.time = this.timeOf(Math.max(0, this.momentOf(poster) - LEAD_S))
      this.start(poster)
    }, { threshold: [0.5] })
    sight.observe(this.mapBox)
  }

  play() {
    if (this.time >= this.duration) this.time = 0
    this.isUntouched = false
    this.start()
  }

  // Let time pass until the run ends or, if that is earlier, until `end`.
  start(end = Infinity) {
    this.endOfPlay = end
    this.isPlaying = true
    this.selection.frame = -1
    this.playButton.textContent = "❚❚ Pause"
    this.playButton.setAttribute("aria-label", "Pause")
    this.lastTick = null
    requestAnimationFrame((now) => this.advance(now))
  }

  pause() {
    if (!this.isPlaying) return
    this.isPlaying = false
    this.playButton.textContent = "▶ Play"
    this.playButton.setAttribute("aria-label", "Play")
    this.wantPicture()
  }

  advance(now) {
    if (!this.isPlaying || this.isGone) return
    if (!this.root.isConnected) return this.pause()
    // A hidden page gets no animation frames. When it is visible again, playback continues where it was.
    const passed = this.lastTick == null ? 0 : Math.min((now - this.lastTick) / 1000, 0.1)
    this.lastTick = now
    const moment = this.momentOf(this.time) + passed * this.speed
    this.time = this.timeOf(moment)
    if (moment >= this.playbackLength || this.time >= this.endOfPlay) {
      this.time = Math.min(this.duration, this.endOfPlay)
      this.pause()
    }
    this.paint()
    if (this.isPlaying) requestAnimationFrame((next) => this.advance(next))
  }

  jump(time, isPausing = true) {
    this.isUntouched = false
    this.steppedTo = null
    this.selection.frame = -1
    this.time = clamp(time, 0, this.duration)
    if (isPausing) this.pause()
    this.wantPicture()
  }

  // Go to the next interesting moment, after the last one to the first one, and write what happens there.
  jumpToMoment() {
    const { moments } = this.picture
    if (!moments.length) return
    const next = moments.find(([time]) => time > this.time + 1e-6) ?? moments[0]
    this.jump(next[0])
    this.moment = next
  }

  // Go to the next (or previous) message, at a third of its path, where it is easy to see.
  step(direction) {
    const { from } = this.frames.table
    const now = this.steppedTo ?? this.tick
    const next = direction > 0 ? countUpTo(from, now) : countUpTo(from, Math.ceil(now) - 1) - 1
    if (next >= 0 && next < from.length) this.goToFrame(next)
  }

  goToFrame(row) {
    const { from, until } = this.frames.table
    this.jump((from[row] + (until[row] - from[row]) / 3) * this.picture.tick_s)
    this.steppedTo = from[row]
  }

  setTimeRange(range) {
    const [low, high] = range ?? [0, this.duration]
    const width = clamp(high - low, this.duration / 5000, this.duration)
    const start = clamp(low, 0, this.duration - width)
    this.timeRange = [start, start + width]
    for (const one of [this.timeline, ...this.curves]) one.isStill = false
    this.wantPicture()
  }

  // Selection

  pickNode(node) {
    this.selection.node = node
    this.onPick?.(node)
    // Charts of the same run select the deliveries of this node; see charts/chart.js.
    announceSelection(this.picture.subject, this, { nodes: new Set(node < 0 ? [] : [this.plan.id[node]]) })
    this.wantPicture()
  }

  // Select a message, and with it its time, its sender and its path.
  pickFrame(row, isMoving = true) {
    if (isMoving) this.goToFrame(row)
    else this.pause()
    const { table } = this.frames
    this.selection.frame = row
    this.selection.node = table.node[row]
    if (table.path && table.path[row] >= 0) {
      this.selection.path = table.path[row]
      if (this.pathChoice) this.pathChoice.value = `${table.path[row]}`
      this.map.shown = null
    }
    this.openPage("messages")
    this.wantPicture()
  }

  frameInWords(row) {
    const { table, words } = this.frames
    const { id } = this.plan
    const to = table.peer && table.peer[row] >= 0 ? id[table.peer[row]] : "all"
    const became = table.text && table.text[row] >= 0 ? `: ${words[table.text[row]]}` : ""
    return `${lookOf(this.frames, row).label} ${id[table.node[row]]} → ${to}${became}`
  }

  // Return the message whose path is shown now; -1 for none.
  findPath() {
    const { paths, is_newest } = this.picture
    const chosen = this.selection.path ?? (is_newest ? "newest" : -1)
    if (chosen != "newest") return chosen
    let newest = -1
    for (let i = 0; i < paths.length; i++) if (paths[i].from_s <= this.time && (newest < 0 || paths[i].from_s >= paths[newest].from_s)) newest = i
    return newest
  }

  // Show what the user selects in a chart of this run: the paths of messages, or else a node.
  applySelection({ subject, from, selected: { paths, nodes } }) {
    if (from === this || !this.picture || subject != this.picture.subject) return
    if (paths) {
      const layer = this.picture.layers.find((one) => one.of_path)
      this.brushed = layer && paths.size ? paths : null
      this.map.shown = null
      if (this.brushed) {
        this.hidden.delete(layer.name)
        this.writeChips()
        const { path, from: begin } = layer.table
        let last = 0
        for (let row = 0; row < path.length; row++) if (paths.has(path[row])) last = Math.max(last, begin[row] + 1)
        this.jump(Math.min(last * this.picture.tick_s, this.duration))
        return
      }
    } else if (nodes?.size) this.selection.node = this.plan.id.indexOf([...nodes][0])
    this.wantPicture()
  }

  // Painting

  wantPicture() {
    if (this.isWanted || this.isGone || !this.picture) return
    this.isWanted = true
    requestAnimationFrame(() => {
      this.isWanted = false
      if (!this.isGone) this.paint()
    })
  }

  paint() {
    this.pathNow = this.findPath()
    this.map.paint()
    this.timeline.paint()
    for (const one of this.curves) one.paint()
    for (const one of this.lanes) one.paint()
    this.slider.value = (this.momentOf(this.time) / this.playbackLength) * 2000
    this.writeClock()
    // While the run plays, texts are updated about ten times a second, because nobody reads faster.
    const now = performance.now()
    if (!this.isPlaying || now - (this.writtenAt ?? 0) > 90) {
      this.writtenAt = now
      this.writeSide()
    }
    this.tellSelection(now)
    this.tellTime()
    this.paints = (this.paints ?? 0) + 1
  }

  // Move the other players of the group to the time of this one: they share a clock.
  tellTime() {
    if (!this.group || this.time === this.timeTold) return
    this.timeTold = this.time
    for (const other of this.group) if (other !== this) other.follow(this.time)
  }

  follow(time) {
    if (this.isGone || !this.picture) return
    this.pause()
    this.isUntouched = false
    this.time = this.timeTold = clamp(time, 0, this.duration)
    this.wantPicture()
  }

  // Report the selection to `onSelect`: at once while the player is paused, at most four times a second while it plays.
  tellSelection(now) {
    if (!this.onSelect || (this.isPlaying && now - (this.selectionToldAt ?? 0) < 250)) return
    const { node, frame } = this.selection
    const { table } = this.frames
    const selection = { node: node < 0 ? null : this.plan.id[node], row: table.row?.[frame] ?? null, time_s: this.time }
    const text = JSON.stringify(selection)
    if (text == this.selectionTold) return
    this.selectionTold = text
    this.selectionToldAt = now
    this.onSelect(selection)
  }

  // Store dissected frames of this run, which the kernel has sent.
  tellBytes(bytes) {
    if (!bytes.at) return
    this.picture.bytes = bytes
    this.messages.shownFrame = null
    this.wantPicture()
  }

  writeClock() {
    const { running } = this.picture
    const i = countUpTo(running.time, this.time) - 1
    const total = (name, digits = 0) => (i < 0 ? 0 : running[name][i]).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })
    this.clock.innerHTML = `${writeTime(this.time)}<span> s of ${this.duration.toLocaleString("en")} s</span>`
    this.slider.setAttribute("aria-valuetext", `${writeTime(this.time)} s`)
    if (this.picture.is_preview) return
    /** @type {[string, number, string][]} */
    const counts = [["deliveries", 0, "deliveries"], ["transmissions", 0, "transmissions"], ["energy", 1, "mJ radio"]]
    this.totals.innerHTML = counts.map(([name, digits, label]) => `<span><b>${total(name, digits)}</b> ${label}</span>`).join("")
  }

  writeSide() {
    if (this.picture.is_preview) return
    const { node, frame } = this.selection
    const path = this.pathNow >= 0 ? this.picture.paths[this.pathNow] : null
    const moment = this.moment && this.moment[0] == this.time ? [`★ ${writeTime(this.moment[0])} s: ${this.moment[1]}`] : []
    const sentence = [...moment, ...(path ? [`${path.label}${path.description ? `: ${path.description}` : ""}`] : [])].join(" · ")
    if (this.followed.textContent != sentence) this.followed.textContent = sentence
    if (this.openedPage == "messages") {
      this.messages.update()
      if (frame !== this.messages.shownFrame) {
        this.messages.shownFrame = frame
        this.messages.showFrame(frame)
      }
      return
    }
    const role = this.map.nodeLooks?.[node]?.label ?? ""
    const text = node < 0 ? '<p class="wb-hint">Click a node to see what it knew and had counted at this time.</p>' : nodeText(this.picture, node, this.tick, role)
    if (text !== this.inspectorText) this.inspector.innerHTML = this.inspectorText = text
  }
}

// Create a player in an element, or reuse the existing one, and feed it with `data`, a payload.
function mount(root, data) {
  root.workbenchPlayer ??= new Player(root)
  if (data) root.workbenchPlayer.feed(data)
  return root.workbenchPlayer
}
