-- The protocols in Wireshark: fields of a frame become a tree, as in `wb.dissect`.

local broadcast_address = Field.new("wpan.dst16")

local KINDS = { number = ProtoField.uint32, octets = ProtoField.bytes, text = ProtoField.string }

-- Register a protocol. names: {field's name without numbers: {abbreviation, kind}}.
local function register(name, title, pan, dissect, arguments, names)
  local protocol = Proto(name, title)
  local not_read = ProtoExpert.new(name .. ".not_read", "Not read", expert.group.MALFORMED, expert.severity.WARN)
  local fields, by_name = {}, {}
  for field_name, field in pairs(names) do
    local make = KINDS[field[2]]
    by_name[field_name] = { make(name .. "." .. field[1], field_name), field[2] }
    fields[#fields + 1] = by_name[field_name][1]
  end
  local any_field = ProtoField.string(name .. ".field", "field")
  fields[#fields + 1] = any_field
  protocol.fields = fields
  protocol.experts = { not_read }

  -- The frame of a transmission is that of the next packets too, one for each of its receivers.
  local last_frame, last_broadcast, last_fields
  local function fields_of(frame, is_broadcast)
    if frame ~= last_frame or is_broadcast ~= last_broadcast then
      local is_fine, result = pcall(dissect, py.b(frame), is_broadcast, arguments)
      if not is_fine then
        local reason = type(result) == "table" and py.str(result) or tostring(result)
        result = py.list(py.list("frame", 0, #frame, reason, py.list()))
      end
      last_frame, last_broadcast, last_fields = frame, is_broadcast, result
    end
    return last_fields
  end

  local function add(tree, buffer, field)
    local from, to = field[2], field[3]
    local range = to > from and buffer(from, to - from) or buffer(math.max(0, math.min(from, buffer:len() - 1)), 0)
    local label = field[1] .. (field[4] ~= "" and ": " .. field[4] or "")
    local known = by_name[(field[1]:gsub("%s*%d+$", ""))]
    local item
    if field[5].n == 0 and known and known[2] == "number" and to - from <= 4 and to > from then
      item = tree:add_le(known[1], range)
    elseif field[5].n == 0 and known and known[2] == "octets" and to > from then
      item = tree:add(known[1], range)
    elseif known and known[2] == "text" then
      item = tree:add(known[1], range, field[4])
    else
      item = tree:add(any_field, range, field[4])
    end
    item:set_text(label)
    item:set_len(to - from)
    if field[1] == NOT_READ or field[1] == REFUSED then item:add_proto_expert_info(not_read, label) end
    for _, child in py.each(field[5]) do add(item, buffer, child) end
  end

  function protocol.dissector(buffer, packet, root)
    packet.cols.protocol = title
    local destination = broadcast_address()
    local is_broadcast = destination ~= nil and destination.value == 0xFFFF
    local frame = buffer:len() > 0 and buffer:raw() or ""
    local tree = root:add(protocol, buffer())
    local result = fields_of(frame, is_broadcast)
    for _, field in py.each(result) do add(tree, buffer, field) end
    packet.cols.info = title .. (result.n > 0 and ": " .. result[1][4] or "")
    return buffer:len()
  end

  DissectorTable.get("wpan.panid"):add(pan, protocol)
end
