// The player of a run: picks what is alive at a time and hands it to Bokeh. One instance per figure.
//
// This file is the body of one CustomJS that is attached to every button, slider and tap. Its arguments:
//   plan, film, running, counts   columns sent once: positions, film knots, running totals, counts per node
//   tables                        columns sent once: intervals by kind, each sorted by `from`
//   drawn                         the sources that are on screen; only these change
//   widgets                       slider, play, speed, pace, clock, panel
//   facts                         plain values: colours, sizes, words, the inspector's tables, times
// A time is in seconds, a moment in seconds of film (see film.py); the slider moves through film.

class Player {
  constructor(plan, film, running, counts, tables, drawn, widgets, facts) {
    Object.assign(this, { film: film.data, running: running.data, counts: counts.data, drawn, widgets, facts })
    this.plan = plan.data
    this.tables = {}
    for (const what of Object.keys(tables)) this.tables[what] = tables[what].data
    this.time = facts.poster_s
    this.untouched = true // the opening picture is from the middle of the run; play begins at the beginning
    this.playing = false
    this.picked = facts.picked
    this.shown = {}
    this.lastTold = 0
  }

  // What is asked for

  answer(cause) {
    const { slider, speed } = this.widgets
    if (cause.event_name == "button_click") {
      const name = cause.origin.name
      if (name == "play") this.playing ? this.pause() : this.play()
      else if (name == "start") this.jump(0)
      else if (name == "back") this.step(-1)
      else if (name == "forward") this.step(1)
    } else if (cause.event_name == "tap") {
      if (cause.origin.name == "timeline") this.jump(cause.x)
      else this.pick(cause)
    } else if (cause === slider) {
      // Not an echo of what the player itself has set.
      if (slider.value !== this.sliderTold) this.jump(this.timeOf(slider.value), false)
    } else if (cause !== speed) this.show() // another pace; or laid out for the first time, or again
  }

  play() {
    if (this.untouched || this.time >= this.facts.duration_s) this.time = 0
    this.untouched = false
    this.playing = true
    this.widgets.play.label = "❚❚  Pause"
    this.lastTick = null
    requestAnimationFrame((now) => this.tick(now))
  }

  pause() {
    this.playing = false
    this.widgets.play.label = "▶  Play"
    this.show()
  }

  tick(now) {
    if (!this.playing) return
    // A hidden page gets no ticks; when it comes back the run goes on where it was.
    const passed = this.lastTick == null ? 0 : Math.min((now - this.lastTick) / 1000, 0.1)
    this.lastTick = now
    const moment = this.momentOf(this.time) + passed * Number(this.widgets.speed.value)
    this.time = this.timeOf(moment)
    if (moment >= this.filmLength()) {
      this.time = this.facts.duration_s
      this.pause()
      return
    }
    this.draw()
    if (now - this.lastTold > 80) this.tell(now)
    requestAnimationFrame((next) => this.tick(next))
  }

  jump(time, pausing = true) {
    this.untouched = false
    this.steppedTo = null
    this.time = Math.min(Math.max(time, 0), this.facts.duration_s)
    if (pausing && this.playing) this.pause()
    else this.show()
  }

  // To the next (or last) frame; it is shown where it is easy to see, a third of its way.
  step(direction) {
    const from = this.steppedTo ?? this.time
    let next = direction > 0 ? Infinity : -Infinity
    let until = 0
    for (const what of this.facts.frames) {
      const table = this.tables[what]
      const i = direction > 0 ? firstAfter(table.from, from) : firstNotBefore(table.from, from) - 1
      if (i < 0 || i >= table.from.length) continue
      if (direction > 0 ? table.from[i] < next : table.from[i] > next) {
        next = table.from[i]
        until = table.until[i]
      }
    }
    if (!isFinite(next)) return
    this.jump(next + (until - next) / 3)
    this.steppedTo = next
  }

  pick(tap) {
    const { x, y } = this.plan
    const reach = (tap.origin.x_range.end - tap.origin.x_range.start) * (18 / tap.origin.inner_width)
    let nearest = -1
    let distance = reach
    for (let i = 0; i < x.length; i++) {
      const d = Math.hypot(x[i] - tap.x, y[i] - tap.y)
      if (d < distance) [nearest, distance] = [i, d]
    }
    this.picked = nearest
    this.show()
  }

  // Film

  isEven() {
    return this.widgets.pace.value == "even"
  }

  filmLength() {
    return this.film.moment[this.film.moment.length - 1]
  }

  momentOf(time) {
    if (this.isEven()) return (time / this.facts.duration_s) * this.filmLength()
    return interpolate(this.film.time, this.film.moment, time)
  }

  timeOf(moment) {
    if (this.isEven()) return Math.min((moment / this.filmLength()) * this.facts.duration_s, this.facts.duration_s)
    return interpolate(this.film.moment, this.film.time, moment)
  }

  // Drawing: one `source.data =` per thing that changed

  show() {
    this.draw()
    this.tell(performance.now())
  }

  // Rows of a kind with from <= time < until; at the very end, those that last to the end.
  alive(what) {
    const { from, until } = this.tables[what]
    const time = Math.min(this.time, this.facts.duration_s - 1e-6)
    const rows = []
    const end = firstAfter(from, time)
    for (let i = 0; i < end; i++) if (until[i] > time) rows.push(i)
    return rows
  }

  // Whether the rows of a picture are others than when it was last drawn.
  changed(picture, rows) {
    const before = this.shown[picture]
    this.shown[picture] = rows
    if (before == null || before.length != rows.length) return true
    for (let i = 0; i < rows.length; i++) if (before[i] != rows[i]) return true
    return false
  }

  draw() {
    this.drawNodes()
    this.drawGradients()
    this.drawBand()
    this.drawWaves()
    this.drawPackets()
    this.drawLosses()
    this.drawPicked()
    this.drawn.cursor.data = { x: [this.time, this.time], y: this.facts.timeline_y }
  }

  drawNodes() {
    const states = this.alive("node_state")
    const failed = this.alive("failed")
    if (!this.changed("nodes", states.concat([-1], failed))) return
    const roles = this.roles(states, failed)
    const { fills, lines, line_widths, markers, sizes, role_names } = this.facts
    const data = { ...this.drawn.nodes.data }
    const shares = this.shares(states)
    data.fill = roles.map((role, i) => (role == this.facts.decoding ? this.rankColour(shares[i]) : fills[role]))
    data.line = roles.map((role) => lines[role])
    data.marker = roles.map((role) => markers[role])
    data.size = roles.map((role) => sizes[role])
    data.width = roles.map((role) => line_widths[role])
    data.role = roles.map((role) => role_names[role])
    this.drawn.nodes.data = data
    this.rolesNow = roles
  }

  // The first role that applies, in the order of facts.role_names: failed, sink, source, ..., node.
  roles(states, failed) {
    const roles = new Array(this.plan.x.length).fill(this.facts.role_names.length - 1)
    const table = this.tables.node_state
    for (const i of states) roles[table.node[i]] = Math.min(roles[table.node[i]], table.look[i])
    for (const i of failed) roles[this.tables.failed.node[i]] = 0
    return roles
  }

  // Of what each node decodes: the largest rank over m.
  shares(states) {
    const shares = new Float64Array(this.plan.x.length)
    const { node, look, weight } = this.tables.node_state
    for (const i of states) if (look[i] == this.facts.decoding) shares[node[i]] = Math.max(shares[node[i]], weight[i])
    return shares
  }

  rankColour(share) {
    const { ranks } = this.facts
    return ranks[Math.round(share * (ranks.length - 1))]
  }

  drawGradients() {
    const rows = this.alive("gradient")
    if (!this.changed("gradients", rows)) return
    const table = this.tables.gradient
    const head = rows.filter((i) => table.look[i] == this.facts.head)
    const reserve = rows.filter((i) => table.look[i] != this.facts.head)
    this.drawn.gradients.data = this.arrows(table, head)
    this.drawn.reserve.data = this.arrows(table, reserve)
  }

  // From near one node to near the other, with the arrow's head a little past the middle.
  arrows(table, rows) {
    const { x, y } = this.plan
    const n = rows.length
    const data = {}
    for (const name of ["x0", "y0", "x1", "y1", "hx", "hy", "angle", "width", "size"]) data[name] = new Float64Array(n)
    rows.forEach((row, i) => {
      const a = table.node[row]
      const b = table.peer[row]
      const dx = x[b] - x[a]
      const dy = y[b] - y[a]
      const clear = Math.min(this.facts.clear_m / (Math.hypot(dx, dy) || 1), 0.4)
      data.x0[i] = x[a] + clear * dx
      data.y0[i] = y[a] + clear * dy
      data.x1[i] = x[b] - clear * dx
      data.y1[i] = y[b] - clear * dy
      data.hx[i] = x[a] + 0.62 * dx
      data.hy[i] = y[a] + 0.62 * dy
      data.angle[i] = Math.atan2(dy, dx) - Math.PI / 2 // a triangle points up
      data.width[i] = this.facts.gradient_px * (1 + 0.55 * table.weight[row])
      data.size[i] = this.facts.arrow_px * (1 + 0.14 * table.weight[row])
    })
    return data
  }

  drawBand() {
    const rows = this.alive("reinforced")
    if (!this.changed("band", rows)) return
    const { node, peer } = this.tables.reinforced
    const { x, y } = this.plan
    this.drawn.band.data = {
      x0: rows.map((i) => x[node[i]]),
      y0: rows.map((i) => y[node[i]]),
      x1: rows.map((i) => x[peer[i]]),
      y1: rows.map((i) => y[peer[i]]),
    }
  }

  // A broadcast is a ring that widens around its sender and fades.
  drawWaves() {
    const rows = this.alive("interest_wave")
    if (!rows.length && !this.shown.waves?.length) return
    this.shown.waves = rows
    const { node, from, until, look } = this.tables.interest_wave
    const { x, y } = this.plan
    const share = rows.map((i) => (this.time - from[i]) / (until[i] - from[i]))
    this.drawn.waves.data = {
      x: rows.map((i) => x[node[i]]),
      y: rows.map((i) => y[node[i]]),
      size: share.map((s) => this.facts.node_px + (this.facts.wave_px - this.facts.node_px) * Math.sqrt(s)),
      alpha: share.map((s) => 0.95 - 0.8 * s),
      color: rows.map((i) => this.facts.colours[look[i]]),
    }
  }

  // A unicast frame is a dot between two nodes, with a tail that shows where it comes from.
  drawPackets() {
    const data = { x: [], y: [], x0: [], y0: [], color: [] }
    const { x, y } = this.plan
    for (const what of ["data_packet", "reinforcement_packet"]) {
      const { node, peer, from, until, look, weight } = this.tables[what]
      for (const i of this.alive(what)) {
        const share = weight[i] * ((this.time - from[i]) / (until[i] - from[i]))
        const [ax, ay] = [x[node[i]], y[node[i]]]
        const [bx, by] = [x[peer[i]], y[peer[i]]]
        const tail = Math.max(share - Math.min(0.3, this.facts.tail_m / (Math.hypot(bx - ax, by - ay) || 1)), 0)
        data.x.push(ax + share * (bx - ax))
        data.y.push(ay + share * (by - ay))
        data.x0.push(ax + tail * (bx - ax))
        data.y0.push(ay + tail * (by - ay))
        data.color.push(this.facts.colours[look[i]])
      }
    }
    if (!data.x.length && !this.drawn.packets.data.x.length) return
    this.drawn.packets.data = data
  }

  // Crosses: on the link where a unicast frame was lost, smaller and fainter for a broadcast.
  drawLosses() {
    const rows = this.alive("lost")
    if (!this.changed("losses", rows)) return
    const { node, peer, weight } = this.tables.lost
    const { x, y } = this.plan
    const at = this.facts.lost_at
    this.drawn.losses.data = {
      x: rows.map((i) => x[peer[i]] + at * (x[node[i]] - x[peer[i]])),
      y: rows.map((i) => y[peer[i]] + at * (y[node[i]] - y[peer[i]])),
      size: rows.map((i) => this.facts.cross_px * (weight[i] ? 1 : 0.45)),
      alpha: rows.map((i) => (weight[i] ? 1 : 0.35)),
    }
  }

  drawPicked() {
    if (!this.changed("picked", [this.picked])) return
    const rows = this.picked < 0 ? [] : [this.picked]
    this.drawn.picked.data = { x: rows.map((i) => this.plan.x[i]), y: rows.map((i) => this.plan.y[i]) }
  }

  // Words: clock, totals, the inspector. Setting a text costs a re-layout, so they follow at a dozen times a second.

  tell(now) {
    this.lastTold = now
    const { slider, clock, panel } = this.widgets
    this.sliderTold = Math.min(this.momentOf(this.time), slider.end)
    slider.value = this.sliderTold
    clock.text = this.clockText()
    const text = this.picked < 0 ? this.facts.hint : this.nodeText(this.picked)
    if (panel.text != text) panel.text = text
  }

  clockText() {
    const { running, time } = this
    const i = firstAfter(running.time, time) - 1
    const total = (name) => (i < 0 ? 0 : running[name][i])
    const number = (value, digits = 0) =>
      value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })
    const cell = (value, label) => `<div class="total"><b>${value}</b><span>${label}</span></div>`
    return (
      `<div class="clock">${number(time, 3)}<span> s of ${this.facts.duration_text}</span></div>` +
      `<div class="totals">${cell(number(total("deliveries")), "deliveries")}` +
      `${cell(number(total("transmissions")), "transmissions")}${cell(number(total("energy"), 1), "mJ radio")}</div>`
    )
  }

  nodeText(place) {
    const role = this.facts.role_names[this.rolesNow?.[place] ?? this.facts.role_names.length - 1]
    const parts = [`<h3>Node ${this.plan.id[place]}</h3><p class="role">${role}</p>`]
    for (const [title, what, columns] of this.facts.inspector) {
      const rows = this.alive(what).filter((i) => this.tables[what].node[i] == place)
      if (!rows.length) continue
      const cells = rows.map((i) => columns.map(([, name, kind]) => this.cell(this.tables[what], i, name, kind)))
      parts.push(
        htmlTable(
          `${title} (${rows.length})`,
          columns.map((column) => column[0]),
          cells,
        ),
      )
    }
    parts.push(...this.matrices(place))
    const counted = this.countsAt(place)
    if (counted.length) parts.push(htmlTable("Counters", [], counted))
    return parts.join("")
  }

  // Of each event that a node decodes what the pivots tell of its matrix; see decoding.py.
  matrices(place) {
    const { node, value, weight, text } = this.tables.decoding
    const rows = this.alive("decoding").filter((i) => node[i] == place)
    const sized = rows.map((i) => [Math.round(value[i] / weight[i]), this.facts.words[text[i]].split(" ").map(Number)])
    return sized.filter(([size]) => size <= this.facts.largest_matrix).map(([size, pivots]) => htmlMatrix(size, pivots))
  }

  cell(table, row, name, kind) {
    const value = table[name][row]
    if (kind == "word") return escape(this.facts.words[value])
    if (kind == "place") return value < 0 ? "–" : this.plan.id[value]
    if (kind == "node") return value < 0 ? "–" : value
    if (kind == "use") return value == 0 ? "–" : `${Math.pow(this.facts.weight_base, value - 1)}+`
    if (kind == "until") return value < 0 || value >= 1e15 ? "never" : `${(value / 1e6).toFixed(1)} s`
    return value
  }

  countsAt(place) {
    const { time, kind } = this.counts
    const first = this.plan.first[place]
    const end = this.plan.first[place + 1] ?? time.length
    const found = new Array(this.facts.counters.length).fill(0)
    for (let i = first; i < end && time[i] <= this.time; i++) found[kind[i]] += this.facts.count_step
    const rows = this.facts.counters.map((words, k) => [words, found[k].toLocaleString("en")])
    return rows.filter((_, k) => found[k] > 0).map(([words, count]) => [escape(words), count])
  }
}

function htmlTable(title, header, rows) {
  const line = (cells, tag) => `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join("")}</tr>`
  const body = rows.map((cells) => line(cells, "td")).join("")
  return `<h4>${title}</h4><table>${header.length ? line(header, "th") : ""}${body}</table>`
}

function htmlMatrix(size, pivots) {
  const looks = { 1: "pivot", 0: "zero", "": "other" }
  const columns = [...Array(size).keys()]
  const rows = pivots.map((pivot) =>
    columns.map((column) => (column == pivot ? "1" : column < pivot || pivots.includes(column) ? "0" : "")),
  )
  const lines = rows.map((row) => row.map((cell) => `<td class="${looks[cell]}">${cell}</td>`).join(""))
  while (lines.length < size) lines.push('<td class=""></td>'.repeat(size))
  return `<table class="matrix">${lines.map((line) => `<tr>${line}</tr>`).join("")}</table>`
}

function escape(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;")
}

// How many of some ascending values are <= x.
function firstAfter(values, x) {
  let [low, high] = [0, values.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle] <= x) low = middle + 1
    else high = middle
  }
  return low
}

// How many of some ascending values are < x.
function firstNotBefore(values, x) {
  let [low, high] = [0, values.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle] < x) low = middle + 1
    else high = middle
  }
  return low
}

function interpolate(xs, ys, x) {
  const i = firstAfter(xs, x)
  if (i == 0) return ys[0]
  if (i == xs.length) return ys[ys.length - 1]
  return ys[i - 1] + ((x - xs[i - 1]) / (xs[i] - xs[i - 1])) * (ys[i] - ys[i - 1])
}

// The player lives on the source of the nodes: all callbacks of a figure share it.
drawn.nodes.player ??= new Player(plan, film, running, counts, tables, drawn, widgets, facts)
drawn.nodes.player.answer(cb_obj)
