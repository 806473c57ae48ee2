// The overlay on top of the player of a run: trees, keys, a message's route, zones and repair at the player's time.
//
// This file is the body of one CustomJS. The player moves its timeline's cursor with every picture; this follows the
// cursor and picks what is alive then. Its arguments:
//   cursor        the timeline's cursor, of which the first x is the time in seconds
//   plan          positions of the nodes
//   tables        columns sent once: places, orphans, zones, boxes, hops, marks, frames, each with `from` or `at` in s
//   drawn         the sources that are on screen; only these change
//   widgets       layers, colour, tree, route
//   map, zones    the figures
//   facts         plain values: colours, sizes, labels

class OverlaySkin {
  constructor(cursor, plan, tables, drawn, widgets, map, zones, facts) {
    Object.assign(this, { cursor, drawn, widgets, map, zones, facts })
    this.plan = plan.data
    this.tables = {}
    for (const what of Object.keys(tables)) this.tables[what] = tables[what].data
    this.shown = {}
  }

  get time() {
    return this.cursor.data.x[0]
  }

  show() {
    this.drawTrees()
    this.drawKeys()
    this.drawRoute()
    this.drawZones()
    if (this.drawn.repair_cursor) this.drawn.repair_cursor.data = { x: [this.time, this.time], y: this.facts.repair_y }
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

  // Trees

  // Places in the tree that is looked at, or in all of them.
  places() {
    const { value } = this.widgets.tree
    const rows = this.alive("places")
    return value == "all" ? rows : rows.filter((i) => this.tables.places.tree[i] == Number(value))
  }

  // Whether nodes are in several trees at once, so that none of these has them to itself.
  isShared() {
    return this.facts.every_tree && this.widgets.tree.value == "all" && this.facts.root_count > 1
  }

  drawTrees() {
    const rows = this.places()
    const orphans = this.alive("orphans")
    const byLoad = this.widgets.colour.value == "load"
    const loads = byLoad ? this.loads() : []
    if (!this.changed("trees", [...rows, "o", ...orphans, "l", ...loads])) return
    const colour = (i) => (this.isShared() && parent[i] >= 0 ? this.facts.shared : trees[tree[i] % trees.length])
    const { node, parent, tree, rekeyed } = this.tables.places
    const { x, y } = this.plan
    const { trees, root_px, disc_px } = this.facts
    const linked = rows.filter((i) => parent[i] >= 0)
    this.drawn.links.data = {
      x0: linked.map((i) => x[node[i]]),
      y0: linked.map((i) => y[node[i]]),
      x1: linked.map((i) => x[parent[i]]),
      y1: linked.map((i) => y[parent[i]]),
      color: linked.map((i) => trees[tree[i] % trees.length]),
    }
    this.drawn.discs.data = {
      x: rows.map((i) => x[node[i]]),
      y: rows.map((i) => y[node[i]]),
      color: rows.map((i) => (byLoad ? this.loadColour(loads[node[i]]) : colour(i))),
      marker: rows.map((i) => (parent[i] < 0 ? "square" : "circle")),
      size: rows.map((i) => (parent[i] < 0 ? root_px : disc_px)),
    }
    const fresh = rows.filter((i) => rekeyed[i])
    this.drawn.rekeyed.data = { x: fresh.map((i) => x[node[i]]), y: fresh.map((i) => y[node[i]]) }
    const lost = orphans.filter((i) => this.tables.orphans.had_place[i]).map((i) => this.tables.orphans.node[i])
    this.drawn.orphans.data = { x: lost.map((n) => x[n]), y: lost.map((n) => y[n]) }
  }

  // Frames that each node has sent so far.
  loads() {
    const { at } = this.tables.frames
    const { first } = this.tables.senders
    return Array.from(first, (start, n) => firstAfter(at, this.time, start, first[n + 1] ?? at.length) - start)
  }

  loadColour(count) {
    const { shades, most_frames } = this.facts
    return shades[Math.round((count / most_frames) * (shades.length - 1))]
  }

  // Keys, where they can be read: of the nodes in sight, if these are few.
  drawKeys() {
    const { node, label } = this.tables.places
    const { x, y } = this.plan
    const { x_range, y_range } = this.map
    const inSight = (n) => x[n] >= x_range.start && x[n] <= x_range.end && y[n] >= y_range.start && y[n] <= y_range.end
    let rows = this.places().filter((i) => inSight(node[i]))
    if (this.isShared() || rows.length > this.facts.most_keys) rows = []
    if (!this.changed("keys", rows)) return
    this.drawn.keys.data = {
      x: rows.map((i) => x[node[i]]),
      y: rows.map((i) => y[node[i]]),
      text: rows.map((i) => label[i]),
    }
  }

  // The route that is followed: its hops and marks up to now

  chosen() {
    const { value } = this.widgets.route
    if (value == "none") return -1
    if (value != "newest") return Number(value)
    const { at, kind } = this.tables.routes
    let newest = -1
    for (let i = 0; i < at.length; i++) if (kind[i] == 1 && at[i] <= this.time && (newest < 0 || at[i] >= at[newest])) newest = i
    return newest
  }

  drawRoute() {
    const route = this.chosen()
    const { hops, marks } = this.tables
    const rows = []
    for (let i = 0; i < hops.at.length; i++) if (hops.route[i] == route && hops.at[i] <= this.time) rows.push(i)
    const told = []
    for (let i = 0; i < marks.at.length; i++) if (marks.route[i] == route && marks.at[i] <= this.time) told.push(i)
    if (!this.changed("route", [route, ...rows, "m", ...told])) return
    this.drawn.trail.data = this.arrows(rows)
    const { x, y } = this.plan
    this.drawn.marks.data = {
      x: told.map((i) => x[marks.node[i]]),
      y: told.map((i) => y[marks.node[i]]),
      color: told.map((i) => this.facts.mark_colours[marks.look[i]]),
      size: told.map((i) => this.facts.mark_px + 5 * marks.look[i]),
    }
  }

  // Each on the right of its way, notifications a lane farther out.
  arrows(rows) {
    const { a, b, kind } = this.tables.hops
    const { x, y } = this.plan
    const data = { x0: [], y0: [], x1: [], y1: [], angle: [], color: [] }
    for (const i of rows) {
      const [dx, dy] = [x[b[i]] - x[a[i]], y[b[i]] - y[a[i]]]
      const length = Math.hypot(dx, dy) || 1
      const clear = Math.min(this.facts.clear_m / length, 0.3)
      const aside = (this.facts.lane_m * (kind[i] == 2 ? 2.1 : 1)) / length
      data.x0.push(x[a[i]] + clear * dx + aside * dy)
      data.y0.push(y[a[i]] + clear * dy - aside * dx)
      data.x1.push(x[b[i]] - clear * dx + aside * dy)
      data.y1.push(y[b[i]] - clear * dy - aside * dx)
      data.angle.push(Math.atan2(dy, dx) - Math.PI / 2) // a triangle points up
      data.color.push(this.facts.messages[kind[i]])
    }
    return data
  }

  // Zones

  drawZones() {
    const rows = this.alive("zones").sort((i, j) => this.tables.zones.depth[i] - this.tables.zones.depth[j])
    const covered = this.alive("boxes")
    if (!this.changed("zones", [...rows, "b", ...covered, this.zones.x_range.start, this.zones.x_range.end])) return
    const table = this.tables.zones
    const px = (this.zones.inner_width || 800) / (this.zones.x_range.end - this.zones.x_range.start)
    const column = (name) => rows.map((i) => table[name][i])
    this.drawn.zones.data = {
      left: column("low"),
      right: rows.map((i) => table.high[i] + 1),
      middle: rows.map((i) => (table.low[i] + table.high[i] + 1) / 2),
      top: rows.map((i) => table.tree[i] + 0.3),
      bottom: rows.map((i) => table.tree[i] + 0.86),
      color: rows.map((i) => this.facts.depths[table.tree[i] % this.facts.depths.length][Math.min(table.depth[i], 7)]),
      ink: rows.map((i) => this.facts.inks[table.tree[i] % this.facts.inks.length][Math.min(table.depth[i], 7)]),
      node: column("node"),
      key: column("key"),
      strings: rows.map((i) => `${this.string(table.low[i])} – ${this.string(table.high[i])}`),
      text: rows.map((i) => (px * (table.high[i] - table.low[i] + 1) > 8 * `${table.node[i]}`.length + 6 ? `${table.node[i]}` : "")),
    }
    const box = this.tables.boxes
    const lane = (i) => box.tree[i] + 0.24 - box.lane[i] * this.facts.lane_y
    this.drawn.boxes.data = {
      left: covered.map((i) => box.low[i]),
      right: covered.map((i) => box.high[i] + 1),
      top: covered.map((i) => lane(i) - 0.7 * this.facts.lane_y),
      bottom: covered.map(lane),
      color: covered.map((i) => this.facts.queries[box.lane[i] % this.facts.queries.length]),
      text: covered.map((i) => this.facts.asked[box.query[i]]),
    }
  }

  // Of more than 52 bits a number is not exact any more.
  string(number) {
    if (this.facts.key_bits > 52) return "…"
    return number.toString(2).padStart(this.facts.key_bits, "0")
  }
}

// How many of the ascending values from `low` to before `high` are <= x, counted from the first of all values.
function firstAfter(values, x, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle] <= x) low = middle + 1
    else high = middle
  }
  return low
}

// The skin lives on the source of the trees: all callbacks of a figure share it.
drawn.links.skin ??= new OverlaySkin(cursor, plan, tables, drawn, widgets, map, zones, facts)
drawn.links.skin.show()
