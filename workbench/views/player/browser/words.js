// Texts beside the map: the state and the counters of a node, and the table of messages.

const ROW_PX = 21
const LARGEST_MATRIX = 16

// Columns whose default is -1 if a table lacks them, as in layers.COLUMNS; all others have the default 0.
const ABSENT = new Set(["node", "peer", "origin", "text", "path", "row"])

// Format -> the text of a cell in the inspector's tables, as in layers.Section.
const CELLS = {
  number: (value) => `${value}`,
  node: (value) => (value < 0 ? "–" : `${value}`),
  until: (value) => (value < 0 || value >= 1e15 ? "never" : `${(value / 1e6).toFixed(1)} s`),
  time: (value) => `${(value / 1e6).toFixed(3)} s`,
  use: (value) => (value == 0 ? "–" : `${4 ** (value - 1)}+`),
  percent: (value) => `${+(100 * value).toPrecision(2)} %`,
}

function cellText(picture, layer, row, column, how) {
  if (how == "word" || how == "echelon") {
    if (column == "look") return escapeText(lookOf(layer, row)?.label ?? "")
    const word = layer.table.text ? layer.table.text[row] : -1
    return word < 0 ? "" : escapeText(layer.words[word])
  }
  if (column == "from_us" || column == "until_us") {
    return CELLS[how](layer.table[column.slice(0, -3)][row] * picture.tick_s * 1e6)
  }
  let value = layer.table[column] ? layer.table[column][row] : ABSENT.has(column) ? -1 : 0
  // Nodes and peers are indices of the plan's arrays; origins are the numbers of nodes.
  if ((column == "node" || column == "peer") && value >= 0) value = picture.plan.id[value]
  return CELLS[how](value)
}

// Return the state of a node at a tick as HTML: the tables of all layers with a section.
function nodeText(picture, node, tick, role) {
  const parts = [`<h3>Node ${picture.plan.id[node]}</h3><p class="wb-role">${escapeText(role)}</p>`]
  for (const layer of picture.layers) {
    if (!layer.section || !layer.table.node) continue
    const rows = aliveRows(layer, tick).filter((row) => layer.table.node[row] == node)
    if (!rows.length) continue
    const { title, columns } = layer.section
    const plain = columns.filter(([, , how]) => how != "echelon")
    const cells = rows.map((row) => plain.map(([, column, how]) => cellText(picture, layer, row, column, how)))
    parts.push(tableText(`${title} (${rows.length})`, plain.map(([heading]) => heading), cells))
    if (plain.length < columns.length) parts.push(...rows.map((row) => echelonText(layer, row)))
  }
  const counted = countsAt(picture.counts, node, tick)
  if (counted.length) parts.push(tableText("Counters", [], counted))
  return parts.join("")
}

function tableText(title, headings, rows) {
  const head = headings.length ? `<tr>${headings.map((one) => `<th>${escapeText(one)}</th>`).join("")}</tr>` : ""
  return `<h4>${escapeText(title)}</h4><table>${head}${rows.map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join("")}</tr>`).join("")}</table>`
}

// Return a matrix in reduced row echelon form, as far as its pivots determine it; missing packets are empty rows.
function echelonText(layer, row) {
  const pivots = layer.words[layer.table.text[row]].split(" ").filter(Boolean).map(Number)
  const size = Math.round(layer.table.value[row] / layer.table.weight[row])
  if (!(size <= LARGEST_MATRIX)) return ""
  const others = new Set(pivots)
  const lines = [...pivots]
    .sort((a, b) => a - b)
    .map((pivot) =>
      Array.from({ length: size }, (_, column) =>
        column == pivot ? '<td class="pivot">1</td>' : column < pivot || others.has(column) ? '<td class="zero">0</td>' : '<td class="other"></td>'
      ).join("")
    )
  while (lines.length < size) lines.push("<td></td>".repeat(size))
  return `<table class="wb-matrix">${lines.map((line) => `<tr>${line}</tr>`).join("")}</table>`
}

// Return the counters of a node at a tick: [[name, number], ...]
function countsAt(counts, node, tick) {
  const { first, time, kind, words, step } = counts
  const end = countUpTo(time, tick, first[node], first[node + 1] ?? time.length)
  const found = new Array(words.length).fill(0)
  for (let i = first[node]; i < end; i++) found[kind[i]] += step
  return words.map((word, i) => [escapeText(word), found[i].toLocaleString("en")]).filter((_, i) => found[i])
}

// The table of messages. It lists all of them, but only the visible lines are elements of the page.
class MessageTable {
  shownFrame = null // the frame whose bytes are shown

  constructor(player, parent) {
    this.player = player
    this.bar = element("div", "wb-message-bar", parent)
    this.choice = element("select", "", this.bar)
    this.choice.setAttribute("aria-label", "Which messages are listed")
    this.offer([])
    this.choice.addEventListener("change", () => this.list())
    this.count = element("span", "", this.bar)
    this.head = element("div", "wb-line wb-head", parent)
    for (const label of ["time", "from", "to", "message", "B", "what became of it"]) element("span", "", this.head, label)
    this.scroll = element("div", "wb-lines", parent)
    this.scroll.tabIndex = 0
    this.scroll.setAttribute("role", "listbox")
    this.scroll.setAttribute("aria-label", "Messages")
    this.spacer = element("div", "wb-spacer", this.scroll)
    this.scroll.addEventListener("scroll", () => this.paint())
    this.scroll.addEventListener("keydown", (event) => this.key(event))
    this.detail = element("div", "wb-detail", parent)
    this.rows = []
  }

  // Fill the menu, also with kinds of messages. The selected entry remains selected if it is still there.
  offer(kinds) {
    const { value } = this.choice
    const choices = [["all", "all messages"], ["node", "of the selected node"], ["path", "of the followed message"]]
    const offered = [...choices, ...kinds.map((kind) => [`kind ${kind}`, kind])]
    if (offered.length == this.choice.length && offered.every(([one], i) => this.choice[i].value == one)) return
    this.choice.textContent = ""
    for (const [value, label] of offered) element("option", "", this.choice, label).value = value
    this.choice.value = offered.some(([one]) => one == value) ? value : "all"
  }

  feed() {
    this.layer = this.player.frames
    if (!this.player.picture.is_preview) this.offer(kindsOf(this.layer))
    this.detail.textContent = ""
    this.listed = null
    // If the table is not visible, `update` fills it when it becomes visible.
    if (this.player.openedPage == "messages") this.list()
  }

  // Select the rows to list.
  list() {
    const { node, path } = { node: this.player.selection.node, path: this.player.pathNow }
    const { table, rows } = this.layer
    const every = Array.from({ length: rows }, (_, i) => i)
    const { value } = this.choice
    if (value == "node") this.rows = every.filter((i) => table.node[i] == node || (table.peer && table.peer[i] == node))
    else if (value == "path") this.rows = every.filter((i) => table.path && path >= 0 && table.path[i] == path)
    else if (value.startsWith("kind ")) this.rows = every.filter((i) => `kind ${lookOf(this.layer, i).label}` == value)
    else this.rows = every
    this.listed = `${value} ${value == "node" ? node : value == "path" ? path : ""}`
    this.count.textContent = `${this.rows.length.toLocaleString("en")}`
    this.spacer.style.height = `${this.rows.length * ROW_PX}px`
    this.follow()
  }

  // Update the table after a change of the selection.
  update() {
    const { value } = this.choice
    const wanted = `${value} ${value == "node" ? this.player.selection.node : value == "path" ? this.player.pathNow : ""}`
    if (wanted != this.listed) this.list()
    else this.follow()
  }

  // Scroll to the selected message, or else to the newest one.
  follow() {
    const { frame } = this.player.selection
    const { from } = this.layer.table
    const tick = this.player.tick
    let low = 0
    let high = this.rows.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (from[this.rows[middle]] <= tick) low = middle + 1
      else high = middle
    }
    const chosen = frame >= 0 ? this.rows.indexOf(frame) : -1
    this.now = chosen >= 0 ? chosen : low - 1
    const top = this.now * ROW_PX
    const { scrollTop, clientHeight } = this.scroll
    if (clientHeight && (top < scrollTop || top > scrollTop + clientHeight - ROW_PX)) this.scroll.scrollTop = top - clientHeight / 2
    this.paint()
  }

  paint() {
    const first = Math.max(Math.floor(this.scroll.scrollTop / ROW_PX) - 2, 0)
    const last = Math.min(first + Math.ceil((this.scroll.clientHeight || 160) / ROW_PX) + 4, this.rows.length)
    this.spacer.textContent = ""
    for (let i = first; i < last; i++) this.spacer.append(this.line(i))
  }

  line(i) {
    const row = this.rows[i]
    const { table } = this.layer
    const look = lookOf(this.layer, row)
    const made = element("div", `wb-line${i == this.now ? " wb-now" : ""}${table.from[row] > this.player.tick ? " wb-later" : ""}`)
    made.style.top = `${i * ROW_PX}px`
    made.setAttribute("role", "option")
    made.setAttribute("aria-selected", row == this.player.selection.frame)
    const { id } = this.player.plan
    const cells = [
      writeTime(this.player.endOf(row)),
      id[table.node[row]],
      table.peer && table.peer[row] >= 0 ? id[table.peer[row]] : "all",
      "",
      table.size ? table.size[row] : "",
      table.text && table.text[row] >= 0 ? this.layer.words[table.text[row]] : "",
    ]
    for (const cell of cells) element("span", "", made, `${cell}`).title = cell
    const name = made.children[3]
    element("i", "", name).style.background = look.colour[this.player.isDark]
    name.title = look.label
    name.append(look.label)
    made.addEventListener("click", () => this.player.pickFrame(row))
    return made
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key]
    if (!step || !this.rows.length) return
    event.preventDefault()
    event.stopPropagation()
    this.player.pickFrame(this.rows[clamp(this.now + step, 0, this.rows.length - 1)])
  }

  // Show the bytes and fields of the selected message.
  showFrame(frame) {
    this.detail.innerHTML = frame < 0 ? "" : bytesText(this.player.picture.bytes, this.layer, frame)
  }
}

// Return the labels of the kinds of messages in a layer.
function kindsOf(layer) {
  const found = new Set()
  for (let i = 0; i < layer.rows; i++) found.add(lookOf(layer, i).label)
  return [...found].sort()
}

// Return the bytes of a frame with its fields. `bytes` is null or {at: row of the trace -> index in frames,
// frames: [[hex, fields], ...]}.
function bytesText(bytes, layer, row) {
  const which = bytes && layer.table.row ? bytes.at[layer.table.row[row]] : undefined
  if (which === undefined) return bytes?.note ? `<p class="wb-hint">${escapeText(bytes.note)}</p>` : ""
  const [hex, fields] = bytes.frames[which]
  const lines = []
  const write = (some, depth) => {
    for (const [name, start, end, text, inner] of some) {
      const digits = (hex.slice(2 * start, 2 * end).match(/../g) ?? []).join(" ")
      const shown = inner.length ? "" : `<code>${digits.length > 47 ? `${digits.slice(0, 44)}…` : digits}</code>`
      lines.push(`<tr><td style="padding-left:${depth}em">${escapeText(name)}</td><td>${end - start == 1 ? start : `${start}–${end - 1}`}</td><td>${shown}</td><td>${escapeText(text)}</td></tr>`)
      write(inner, depth + 1)
    }
  }
  write(fields, 0)
  return `<table class="wb-fields">${lines.join("")}</table>`
}
