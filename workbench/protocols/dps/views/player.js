// The mesh of DPS on top of the player of a run: filters, muted links and a publication's way at the player's time.
//
// This file is the body of one CustomJS. The player moves its timeline's cursor with every picture; this follows the
// cursor and picks what is alive then. Its arguments:
//   cursor        the timeline's cursor, of which the first x is the time in seconds
//   plan          positions of the nodes
//   tables        columns sent once: links, told, sums, hops, marks, published, each with `from` or `at` in s
//   drawn         the sources that are on screen; only these change
//   widgets       path, said
//   facts         plain values: colours, sizes, sentences

class MeshSkin {
  constructor(cursor, plan, tables, drawn, widgets, facts) {
    Object.assign(this, { cursor, drawn, widgets, facts })
    this.plan = plan.data
    this.tables = {}
    for (const what of Object.keys(tables)) this.tables[what] = tables[what].data
    this.shown = {}
  }

  get time() {
    return this.cursor.data.x[0]
  }

  show() {
    this.drawLinks()
    this.drawSums()
    this.drawPath()
    this.drawn.fill_cursor.data = { x: [this.time, this.time], y: this.facts.fill_y }
  }

  alive(what) {
    const { from, until } = this.tables[what]
    const time = Math.min(this.time, this.facts.duration_s - 1e-6)
    const rows = []
    for (let i = 0; i < from.length && from[i] <= time; i++) if (until[i] > time) rows.push(i)
    return rows
  }

  // Whether what a picture is made of is other than when it was last drawn.
  changed(picture, rows) {
    const text = rows.join()
    if (this.shown[picture] === text) return false
    this.shown[picture] = text
    return true
  }

  colour(bits) {
    const { shades, most_bits } = this.facts
    return shades[Math.round((bits / most_bits) * (shades.length - 1))]
  }

  // Links: active ones as two halves, each in the colour of what its end was told; muted ones dashed.
  drawLinks() {
    const rows = this.alive("links")
    const told = this.alive("told")
    if (!this.changed("links", [...rows, "t", ...told])) return
    const { links, told: filters } = this.tables
    const { active, muted, ground_px } = this.facts
    const bits = new Map(told.map((i) => [`${filters.node[i]} ${filters.peer[i]}`, filters.bits[i]]))
    const seen = new Map()
    for (const i of rows) {
      const [a, b] = [Math.min(links.node[i], links.peer[i]), Math.max(links.node[i], links.peer[i])]
      const key = `${a} ${b}`
      if (!seen.has(key)) seen.set(key, { a, b, states: [] })
      seen.get(key).states.push(links.state[i])
    }
    const mutes = [...seen.values()].filter(({ states }) => states.includes(muted))
    const others = [...seen.values()].filter(({ states }) => !states.includes(muted))
    const isActive = ({ states }) => states.length == 2 && states.every((state) => state == active)
    this.drawn.muted.data = this.segments(mutes)
    this.drawn.ground.data = { ...this.segments(others), width: others.map((one) => ground_px[isActive(one) ? 1 : 0]) }
    const halves = others.filter(isActive).flatMap(({ a, b }) => [[a, b], [b, a]])
    const { x, y } = this.plan
    this.drawn.halves.data = {
      x0: halves.map(([a]) => x[a]),
      y0: halves.map(([a]) => y[a]),
      x1: halves.map(([a, b]) => (x[a] + x[b]) / 2),
      y1: halves.map(([a, b]) => (y[a] + y[b]) / 2),
      color: halves.map(([a, b]) => this.colour(bits.get(`${a} ${b}`) ?? 0)),
    }
  }

  segments(links) {
    const { x, y } = this.plan
    return {
      x0: links.map(({ a }) => x[a]),
      y0: links.map(({ a }) => y[a]),
      x1: links.map(({ b }) => x[b]),
      y1: links.map(({ b }) => y[b]),
    }
  }

  // What is asked for at each node and behind its links.
  drawSums() {
    const rows = this.alive("sums")
    if (!this.changed("sums", rows)) return
    const { node, bits, label } = this.tables.sums
    const { x, y } = this.plan
    const filled = new Map(rows.map((i) => [node[i], bits[i]]))
    this.drawn.discs.data = {
      x: Array.from(x),
      y: Array.from(y),
      color: Array.from(x, (_, n) => this.colour(filled.get(n) ?? 0)),
    }
    const written = this.facts.has_names ? rows.filter((i) => bits[i] > 0) : []
    this.drawn.fills.data = {
      x: written.map((i) => x[node[i]]),
      y: written.map((i) => y[node[i]]),
      text: written.map((i) => label[i]),
      offset: written.map((i) => (y[node[i]] > this.facts.highest_m ? this.facts.name_px : -this.facts.name_px)),
    }
  }

  // The publication that is followed: its hops and marks up to now.

  chosen() {
    const { value } = this.widgets.path
    if (value == "none") return -1
    if (value != "newest") return Number(value)
    const { at } = this.tables.published
    let newest = -1
    for (let i = 0; i < at.length && at[i] <= this.time; i++) newest = i
    return newest
  }

  drawPath() {
    const path = this.chosen()
    const { hops, marks } = this.tables
    const rows = []
    for (let i = 0; i < hops.at.length; i++) if (hops.path[i] == path && hops.at[i] <= this.time) rows.push(i)
    const told = []
    for (let i = 0; i < marks.at.length; i++) if (marks.path[i] == path && marks.at[i] <= this.time) told.push(i)
    if (!this.changed("path", [path, ...rows, "m", ...told])) return
    this.drawn.trail.data = this.arrows(rows)
    const { x, y } = this.plan
    const at = (some) => ({ x: some.map((i) => x[marks.node[i]]), y: some.map((i) => y[marks.node[i]]) })
    this.drawn.delivered.data = at(told.filter((i) => marks.look[i] == 0))
    this.drawn.dead.data = at(told.filter((i) => marks.look[i] != 0))
    // A non-breaking space keeps the line's height where there is nothing to say.
    this.widgets.said.text = path < 0 ? "\u00a0" : this.facts.texts[path]
  }

  // Each on the right of its way, so that answers have a lane of their own.
  arrows(rows) {
    const { node, peer, look } = this.tables.hops
    const { x, y } = this.plan
    const data = { x0: [], y0: [], x1: [], y1: [], angle: [], color: [], width: [] }
    for (const i of rows) {
      const [dx, dy] = [x[peer[i]] - x[node[i]], y[peer[i]] - y[node[i]]]
      const length = Math.hypot(dx, dy) || 1
      const clear = Math.min(this.facts.clear_m / length, 0.3)
      const aside = this.facts.lane_m / length
      data.x0.push(x[node[i]] + clear * dx + aside * dy)
      data.y0.push(y[node[i]] + clear * dy - aside * dx)
      data.x1.push(x[peer[i]] - clear * dx + aside * dy)
      data.y1.push(y[peer[i]] - clear * dy - aside * dx)
      data.angle.push(Math.atan2(dy, dx) - Math.PI / 2) // a triangle points up
      data.color.push(this.facts.hop_colours[look[i]])
      data.width.push(this.facts.hop_px[look[i]])
    }
    return data
  }
}

// The skin lives on the source of the discs: all callbacks of a figure share it.
drawn.discs.skin ??= new MeshSkin(cursor, plan, tables, drawn, widgets, facts)
drawn.discs.skin.show()
