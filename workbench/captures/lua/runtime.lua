-- What Python has and Lua lacks, for the translated functions below; for Lua 5.2 (Wireshark 4.0) to 5.4.
--
-- Values: None is the table None; a text is a string in UTF-8; bytes are a table with a string; a list or tuple is a table with its length in n and items
-- from 1; a bytearray too, of numbers. A dictionary has keys in the order of insertion. A number is a double, and exact up
-- to 2^53; a larger integer is a table of limbs, as the class Int.
local py, M = {}, {}
local None = setmetatable({}, { __tostring = function() return "None" end })
local unpack_table = table.unpack or unpack
local load_text = load

local Bytes = {}
Bytes.__index = Bytes
Bytes.__eq = function(a, b) return a.raw == b.raw end
Bytes.__lt = function(a, b) return a.raw < b.raw end

-- Return a Lua string as bytes.
function py.b(raw)
  return setmetatable({ raw = raw, n = #raw }, Bytes)
end

-- Return the Lua string of bytes or of a bytearray.
local function raw_of(x)
  if type(x) == "string" then return x end
  if x.raw then return x.raw end
  local pieces = {}
  for i = 1, x.n do pieces[i] = string.char(x[i]) end
  return table.concat(pieces)
end

-- The characters of a text, which is a sequence of bytes if it is ASCII.
local CHARACTER = "[%z\1-\127\192-\255][\128-\191]*"

local function characters(text)
  local list = { n = 0 }
  for character in text:gmatch(CHARACTER) do
    list.n = list.n + 1
    list[list.n] = character
  end
  return list
end

local function is_ascii(text)
  return not text:find("[\128-\255]")
end

local function raise(class, message)
  error(py.new(class, message), 0)
end

-- Bits, of numbers below 2^53

local TWO32 = 4294967296

local function by_words(combine)
  return function(a, b)
    local low = combine(a % TWO32, b % TWO32)
    if a < TWO32 and b < TWO32 then return low end
    return combine(math.floor(a / TWO32), math.floor(b / TWO32)) * TWO32 + low
  end
end

local and32, or32, xor32
if bit32 then
  and32, or32, xor32 = bit32.band, bit32.bor, bit32.bxor
else
  local function operator(sign)
    local f = load_text("return function(a, b) return a " .. sign .. " b end")()
    return function(a, b) return f(math.floor(a), math.floor(b)) end
  end
  and32, or32, xor32 = operator("&"), operator("|"), operator("~")
end
local bands, bors, bxors = by_words(and32), by_words(or32), by_words(xor32)

-- Large integers: not negative, limbs of 7 decimal digits, the lowest first

local BASE = 10000000
local Int = {}
Int.__index = Int

local function limbs_of(x)
  if getmetatable(x) == Int then return x end
  local limbs = setmetatable({}, Int)
  repeat
    limbs[#limbs + 1] = x % BASE
    x = math.floor(x / BASE)
  until x == 0
  return limbs
end

local function times_plus(limbs, factor, carry)
  local result = setmetatable({}, Int)
  for i = 1, #limbs do
    local product = limbs[i] * factor + carry
    result[i] = product % BASE
    carry = math.floor(product / BASE)
  end
  while carry > 0 do
    result[#result + 1] = carry % BASE
    carry = math.floor(carry / BASE)
  end
  return result
end

local function divided(limbs, divisor)
  local result, rest = setmetatable({}, Int), 0
  for i = #limbs, 1, -1 do
    local value = rest * BASE + limbs[i]
    result[i] = math.floor(value / divisor)
    rest = value % divisor
  end
  while #result > 1 and result[#result] == 0 do result[#result] = nil end
  return result, rest
end

-- Return a large integer as a number if a number can hold it.
local function normal(limbs)
  if #limbs > 3 then return limbs end
  local value = 0
  for i = #limbs, 1, -1 do value = value * BASE + limbs[i] end
  return value < 9007199254740992 and value or limbs
end

local function is_negative(x)
  if type(x) == "number" then return x < 0 end
  return x.negative
end

local function compare(a, b)
  local a_negative, b_negative = is_negative(a), is_negative(b)
  if a_negative or b_negative then
    if type(a) == "number" and type(b) == "number" then return a - b end
    if a_negative and b_negative then return type(a) == "number" and 1 or -1 end
    return a_negative and -1 or 1
  end
  a, b = limbs_of(a), limbs_of(b)
  if #a ~= #b then return #a - #b end
  for i = #a, 1, -1 do
    if a[i] ~= b[i] then return a[i] - b[i] end
  end
  return 0
end

Int.__lt = function(a, b) return compare(a, b) < 0 end
Int.__le = function(a, b) return compare(a, b) <= 0 end
Int.__eq = function(a, b) return compare(a, b) == 0 end

local function int_text(x)
  if type(x) == "number" then return string.format("%.0f", x) end
  local pieces = { (x.negative and "-" or "") .. string.format("%.0f", x[#x]) }
  for i = #x - 1, 1, -1 do pieces[#pieces + 1] = string.format("%07.0f", x[i]) end
  return table.concat(pieces)
end

function py.int_from_bytes(data, order)
  data = raw_of(data)
  if order == "little" then data = data:reverse() end
  if #data <= 6 then
    local value = 0
    for i = 1, #data do value = value * 256 + data:byte(i) end
    return value
  end
  local limbs = limbs_of(0)
  for i = 1, #data do limbs = times_plus(limbs, 256, data:byte(i)) end
  return normal(limbs)
end

-- Truth, equality, arithmetic

function py.truth(x)
  if x == nil or x == None or x == false or x == 0 or x == "" then return false end
  return not (type(x) == "table" and x.n == 0)
end

function py.is(a, b)
  return a == b or (a == nil and b == None) or (a == None and b == nil)
end

function py.eq(a, b)
  if a == b then return true end
  if getmetatable(a) == Bytes or getmetatable(b) == Bytes then return false end
  if type(a) ~= "table" or type(b) ~= "table" or not a.n or a.n ~= b.n then return false end
  for i = 1, a.n do
    if not py.eq(a[i], b[i]) then return false end
  end
  return true
end

function py.list(...)
  return { n = select("#", ...), ... }
end

function py.list_of(n, items)
  items.n = n
  return items
end

function py.joined(...)
  local out = py.list()
  for i = 1, select("#", ...) do
    for _, item in py.each((select(i, ...))) do py.append(out, item) end
  end
  return out
end

function py.append(list, item)
  list.n = list.n + 1
  list[list.n] = item
end

function py.unpack(list)
  list = py.list_from(list)
  return unpack_table(list, 1, list.n)
end

function py.add(a, b)
  if type(a) == "number" and type(b) == "number" then return a + b end
  if type(a) == "string" then return a .. b end
  if getmetatable(a) == Bytes then return py.b(a.raw .. raw_of(b)) end
  if getmetatable(a) == Int or getmetatable(b) == Int then
    a, b = limbs_of(a), limbs_of(b)
    local sum, carry = setmetatable({}, Int), 0
    for i = 1, math.max(#a, #b) do
      local value = (a[i] or 0) + (b[i] or 0) + carry
      sum[i] = value % BASE
      carry = math.floor(value / BASE)
    end
    if carry > 0 then sum[#sum + 1] = carry end
    return normal(sum)
  end
  return py.joined(a, b)
end

-- Return the difference of integers of which one is large; a large negative one has `negative`.
Int.__sub = function(a, b)
  if compare(a, b) < 0 then
    local magnitude = Int.__sub(b, a)
    if type(magnitude) == "number" then return -magnitude end
    magnitude.negative = true
    return magnitude
  end
  if type(b) == "number" and b < 0 then return py.add(a, -b) end
  a, b = limbs_of(a), limbs_of(b)
  local result, borrow = setmetatable({}, Int), 0
  for i = 1, #a do
    local value = a[i] - (b[i] or 0) - borrow
    borrow = value < 0 and 1 or 0
    result[i] = value + borrow * BASE
  end
  while #result > 1 and result[#result] == 0 do result[#result] = nil end
  return normal(result)
end

function py.sub(a, b)
  if type(a) == "number" and a < 0 and getmetatable(b) == Int then
    local sum = py.add(b, -a)
    sum.negative = true
    return sum
  end
  return a - b
end

function py.mul(a, b)
  if type(a) == "string" then return a:rep(math.max(0, b)) end
  if type(b) == "string" then return b:rep(math.max(0, a)) end
  if type(a) == "table" and a.n then
    local out = py.list()
    for _ = 1, b do out = py.joined(out, a) end
    return out
  end
  if getmetatable(b) == Int then a, b = b, a end
  if getmetatable(a) == Int then return normal(times_plus(a, b, 0)) end
  return a * b
end

function py.div(a, b) return a / b end
function py.floordiv(a, b) return math.floor(a / b) end
function py.pow(a, b) return a ^ b end
function py.divmod(a, b) return py.list(py.floordiv(a, b), a % b) end

function py.mod(a, b)
  if type(a) == "string" then return py.percent(a, b) end
  if getmetatable(a) == Int then
    local _, rest = divided(a, b)
    return rest
  end
  return a % b
end

function py.shl(a, bits)
  if type(a) == "number" and a * 2 ^ bits < 9007199254740992 then return a * 2 ^ bits end
  local limbs = limbs_of(a)
  while bits > 0 do
    local step = math.min(bits, 20)
    limbs, bits = times_plus(limbs, 2 ^ step, 0), bits - step
  end
  return normal(limbs)
end

function py.shr(a, bits)
  if getmetatable(a) == Int then
    local rest
    while bits > 0 do
      local step = math.min(bits, 20)
      a, rest = divided(a, 2 ^ step)
      bits = bits - step
    end
    return normal(a)
  end
  return math.floor(a / 2 ^ bits)
end

function py.band(a, b)
  -- -1 - x, the complement of x, as the right side.
  if type(b) == "number" and b < 0 then return a - bands(a, -1 - b) end
  if getmetatable(a) == Int then
    local _, low = divided(a, TWO32 > b and 2 ^ 20 or 2 ^ 20)
    return bands(low, b)
  end
  return bands(a, b)
end
function py.bor(a, b) return bors(a, b) end
function py.bxor(a, b) return bxors(a, b) end

-- Sequences

local function at(index, n)
  if index < 0 then index = index + n end
  if index < 0 or index >= n then raise(py.IndexError, "index out of range") end
  return index + 1
end

function py.len(x)
  if type(x) == "string" then return is_ascii(x) and #x or characters(x).n end
  return x.n
end

function py.item(x, key)
  if type(x) == "string" then
    local list = characters(x)
    return list[at(key, list.n)]
  end
  if getmetatable(x) == Bytes then return x.raw:byte(at(key, x.n)) end
  if x.__keys then
    local value = x.__values[key]
    if value == nil then raise(py.KeyError, py.repr(key)) end
    return value
  end
  return x[at(key, x.n)]
end

function py.set_item(x, key, value)
  if x.__keys then
    if x.__values[key] == nil then
      x.n = x.n + 1
      x.__keys[x.n] = key
    end
    x.__values[key] = value
  else
    x[at(key, x.n)] = value
  end
end

function py.slice(x, from, to)
  local n = py.len(x)
  from = from == None and 0 or from
  to = to == None and n or to
  if from < 0 then from = math.max(0, from + n) end
  if to < 0 then to = to + n end
  to = math.min(to, n)
  if type(x) == "string" then
    if is_ascii(x) then return x:sub(from + 1, to) end
    return table.concat(characters(x), "", from + 1, math.max(from, to))
  end
  if getmetatable(x) == Bytes then return py.b(x.raw:sub(from + 1, to)) end
  local out = py.list()
  for i = from + 1, to do py.append(out, x[i]) end
  return out
end

function py.dict_of(pairs_)
  local out = { n = 0, __keys = {}, __values = {} }
  for i = 1, #pairs_ do py.set_item(out, pairs_[i][1], pairs_[i][2]) end
  return out
end

function py.set_of(n, items)
  local out = { n = 0, __keys = {}, __values = {} }
  for i = 1, n do py.set_item(out, items[i], true) end
  return out
end

function py.set(x)
  x = py.list_from(x)
  return py.set_of(x.n, x)
end

function py.contains(x, key)
  if type(x) == "string" then return x:find(key, 1, true) ~= nil end
  if getmetatable(x) == Bytes then
    return x.raw:find(type(key) == "number" and string.char(key) or key.raw, 1, true) ~= nil
  end
  if x.__keys then return x.__values[key] ~= nil end
  for i = 1, x.n do
    if py.eq(x[i], key) then return true end
  end
  return false
end

local function next_byte(bytes, i)
  i = i + 1
  if i <= bytes.n then return i, bytes.raw:byte(i) end
end

local function next_item(list, i)
  i = i + 1
  if i <= list.n then return i, list[i] end
end

local function next_key(dict, i)
  i = i + 1
  if i <= dict.n then return i, dict.__keys[i] end
end

function py.each(x)
  if type(x) == "string" then return next_item, characters(x), 0 end
  if getmetatable(x) == Bytes then return next_byte, x, 0 end
  if x.__keys then return next_key, x, 0 end
  return next_item, x, 0
end

function py.list_from(x)
  if type(x) == "table" and x.n and not x.__keys and getmetatable(x) ~= Bytes then return x end
  local out = py.list()
  for _, item in py.each(x) do py.append(out, item) end
  return out
end

function py.range(from, to)
  if to == nil then from, to = 0, from end
  -- Made as it is used: a frame can name more rounds than a table could hold.
  return setmetatable({ n = math.max(0, to - from) }, { __index = function(_, i)
    if type(i) == "number" then return from + i - 1 end
  end })
end

function py.enumerate(x)
  local out = py.list()
  for i, item in py.each(x) do py.append(out, py.list(i - 1, item)) end
  return out
end

function py.zip(...)
  local lists, out, n = {}, py.list(), math.huge
  for i = 1, select("#", ...) do
    lists[i] = py.list_from((select(i, ...)))
    n = math.min(n, lists[i].n)
  end
  for i = 1, n do
    local row = py.list()
    for k = 1, #lists do py.append(row, lists[k][i]) end
    py.append(out, row)
  end
  return out
end

function py.map(f, x)
  local out = py.list()
  for _, item in py.each(x) do py.append(out, f(item)) end
  return out
end

function py.any(x)
  for _, item in py.each(x) do if py.truth(item) then return true end end
  return false
end

function py.all(x)
  for _, item in py.each(x) do if not py.truth(item) then return false end end
  return true
end

function py.sum(x)
  local total = 0
  for _, item in py.each(x) do total = py.add(total, item) end
  return total
end

local function extreme(is_better)
  return function(...)
    local items = select("#", ...) == 1 and (...) or py.list(...)
    local best
    for _, item in py.each(items) do
      if best == nil or is_better(item, best) then best = item end
    end
    if best == nil then raise(py.ValueError, "an empty sequence has no extreme") end
    return best
  end
end
py.max = extreme(function(a, b) return b < a end)
py.min = extreme(function(a, b) return a < b end)

function py.sorted(x)
  local out = py.joined(x)
  table.sort(out)
  return out
end

function py.bytes(x)
  if type(x) == "number" then return py.b(string.rep("\0", x)) end
  return getmetatable(x) == Bytes and x or py.b(raw_of(py.list_from(x)))
end

function py.bytearray(x)
  local out = py.list()
  for _, byte in py.each(py.bytes(x)) do py.append(out, byte) end
  return out
end

function py.tuple(x) return py.list_from(x) end
function py.dict(x) return x or py.dict_of({}) end
function py.bool(x) return py.truth(x) end
function py.abs(x) return math.abs(x) end
function py.float(x) return x end

function py.bin(x)
  local digits = ""
  local limbs = limbs_of(x)
  repeat
    local bit
    limbs, bit = divided(limbs, 2)
    digits = string.format("%.0f", bit) .. digits
  until #limbs == 1 and limbs[1] == 0
  return "0b" .. digits
end

function py.int(x)
  if type(x) ~= "string" then return math.floor(x) end
  local limbs = limbs_of(0)
  for i = 1, #x do limbs = times_plus(limbs, 10, x:byte(i) - 48) end
  return normal(limbs)
end

-- Texts

function py.str(x)
  if type(x) == "string" then return x end
  if type(x) == "number" then
    return x == math.floor(x) and string.format("%.0f", x) or string.format("%.17g", x)
  end
  if type(x) == "boolean" then return x and "True" or "False" end
  if getmetatable(x) == Int then return int_text(x) end
  if type(x) == "table" and py.is_exception(x) then return x.message end
  return py.repr(x)
end

function py.repr(x)
  if type(x) == "string" then return "'" .. x .. "'" end
  if type(x) == "table" then
    if x.__repr__ then return x.__repr__(x) end
    if getmetatable(x) == Bytes then return "b'" .. x.raw .. "'" end
    if x.n and not x.__keys then
      local pieces = {}
      for i = 1, x.n do pieces[i] = py.repr(x[i]) end
      return "(" .. table.concat(pieces, ", ") .. ")"
    end
    if x == None then return "None" end
    if getmetatable(x) == Int then return int_text(x) end
    return "?"
  end
  return py.str(x)
end

local function with_commas(digits)
  local sign, rest = digits:match("^(%-?)(%d+)$")
  rest = rest:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", "")
  return sign .. rest
end

-- The shortest form of %g of C is that of Python, except for the digits of exponents.
function py.format(x, spec)
  if spec == "" then return py.str(x) end
  if spec == "," then return with_commas(py.str(x)) end
  local width = spec:match("^0?(%d*)x$")
  if width and getmetatable(x) == Int then
    local digits, rest = "", nil
    repeat
      x, rest = divided(limbs_of(x), 16)
      digits = string.format("%x", rest) .. digits
    until #x == 1 and x[1] == 0
    return ("0"):rep((tonumber(width) or 0) - #digits) .. digits
  end
  return string.format("%" .. spec, x)
end

function py.percent(template, arguments)
  if type(arguments) ~= "table" or not arguments.n or arguments.__keys then arguments = py.list(arguments) end
  local used = 0
  local function argument()
    used = used + 1
    return arguments[used]
  end
  return (template:gsub("%%([%d%.%*]*)([%a%%])", function(width, code)
    if code == "%" then return "%" end
    width = width:gsub("%*", function() return py.str(argument()) end)
    local value = argument()
    if code == "r" then return py.repr(value) end
    if code == "s" then
      local limit = width:match("^%.(%d+)$")
      return limit and py.str(value):sub(1, tonumber(limit)) or py.str(value)
    end
    if code == "d" and width == "" then return py.str(value) end
    return string.format("%" .. width .. code, value)
  end))
end

local texts = {}

function texts.format(template, ...)
  local arguments, used = py.list(...), 0
  return (template:gsub("{([^}]*)}", function(spec)
    used = used + 1
    return py.format(arguments[used], (spec:gsub("^:", "")))
  end))
end

function texts.join(separator, items)
  items = py.list_from(items)
  local pieces = {}
  for i = 1, items.n do pieces[i] = items[i] end
  return table.concat(pieces, separator)
end

local function escaped(set)
  return "[" .. set:gsub("%p", "%%%0") .. "]"
end

function texts.rstrip(text, set) return (text:gsub(escaped(set or " \n\t") .. "+$", "")) end
function texts.lstrip(text, set) return (text:gsub("^" .. escaped(set or " \n\t") .. "+", "")) end
function texts.strip(text, set) return texts.lstrip(texts.rstrip(text, set), set) end
function texts.replace(text, old, new)
  return (text:gsub((old:gsub("%p", "%%%0")), (new:gsub("%%", "%%%%"))))
end
function texts.upper(text) return text:upper() end
function texts.lower(text) return text:lower() end
function texts.startswith(text, start) return text:sub(1, #start) == start end
function texts.endswith(text, ending) return ending == "" or text:sub(-#ending) == ending end

local octets = {}
function octets.decode(bytes) return bytes.raw end
function octets.hex(bytes)
  return (bytes.raw:gsub(".", function(c) return string.format("%02x", c:byte()) end))
end

local lists = { append = py.append }

function lists.extend(list, items)
  for _, item in py.each(items) do py.append(list, item) end
end

function lists.pop(list)
  local item = list[list.n]
  list[list.n] = nil
  list.n = list.n - 1
  return item
end

local dicts = {}

function dicts.get(dict, key, default)
  local value = dict.__values[key]
  if value == nil then return default == nil and None or default end
  return value
end

function dicts.items(dict)
  local out = py.list()
  for i = 1, dict.n do py.append(out, py.list(dict.__keys[i], dict.__values[dict.__keys[i]])) end
  return out
end

function dicts.values(dict)
  local out = py.list()
  for i = 1, dict.n do py.append(out, dict.__values[dict.__keys[i]]) end
  return out
end

function dicts.keys(dict) return py.list_from(dict) end
function dicts.add(set, key) py.set_item(set, key, true) end

local ints = {}
function ints.bit_count(x)
  local _, ones = py.bin(x):sub(3):gsub("1", "1")
  return ones
end

-- Call a method of any value.
function py.call(x, name, ...)
  if type(x) == "number" or getmetatable(x) == Int then return ints[name](x, ...) end
  if type(x) == "string" then return texts[name](x, ...) end
  if x.__keys then return dicts[name](x, ...) end
  if getmetatable(x) == Bytes then return octets[name](x, ...) end
  local own = rawget(x, name)
  if own ~= nil then return own(...) end
  if x.__class and x.__class.__fields then return x[name](...) end -- a function that a named tuple contains
  if x.__class or x.__is_class then return x[name](x, ...) end
  return (lists[name] or x[name])(x, ...)
end

-- Classes

function py.class(name, bases)
  local class = { __name = name, __bases = bases, __getters = {}, __is_class = true }
  local function find(key)
    local value = rawget(class, key)
    if value ~= nil then return value end
    for i = 1, #bases do
      value = bases[i].__find and bases[i].__find(key)
      if value ~= nil then return value end
    end
  end
  local function getter(key)
    if class.__getters[key] then return class.__getters[key] end
    for i = 1, #bases do
      local found = bases[i].__getter and bases[i].__getter(key)
      if found then return found end
    end
  end
  class.__find, class.__getter = find, getter
  class.__instances = {
    __index = function(instance, key)
      local property = getter(key)
      if property then return property(instance) end
      return find(key)
    end,
  }
  return setmetatable(class, {
    __index = function(_, key)
      for i = 1, #bases do
        local value = bases[i].__find and bases[i].__find(key)
        if value ~= nil then return value end
      end
    end,
    __call = function(_, ...) return py.new(class, ...) end,
  })
end

function py.new(class, ...)
  local instance = setmetatable({ __class = class }, class.__instances)
  local initialise = class.__find("__init__")
  if initialise then initialise(instance, ...) else instance.message = ... end
  return instance
end

function py.class_method(class, f)
  return function(_, ...) return f(class, ...) end
end

py.object = py.class("object", {})
py.Exception = py.class("Exception", {})
-- The built-in exceptions; each derives from Exception alone.
setmetatable(py, {
  __index = function(_, name)
    if not name:find("Error$") then return nil end
    py[name] = py.class(name, { py.Exception })
    return py[name]
  end,
})

local function derives(class, base)
  if class == base then return true end
  for i = 1, #class.__bases do
    if derives(class.__bases[i], base) then return true end
  end
  return false
end

function py.is_exception(x)
  local class = rawget(x, "__class")
  return class ~= nil and derives(class, py.Exception)
end

function py.isinstance(x, kind)
  if kind == py.str then return type(x) == "string" end
  if kind == py.bytes then return getmetatable(x) == Bytes end
  if kind == py.int then return type(x) == "number" or getmetatable(x) == Int end
  if kind == py.list_from or kind == py.tuple then
    return type(x) == "table" and x.n ~= nil and not x.__keys and getmetatable(x) ~= Bytes
  end
  local class = type(x) == "table" and rawget(x, "__class")
  if not class then return false end
  return class == kind or (class.__bases ~= nil and derives(class, kind))
end

function py.named_tuple(name, fields, defaults)
  local class = { __name = name, __is_class = true }
  local position = {}
  for i = 1, #fields do position[fields[i]] = i end
  class.__fields = fields
  local meta = {
    __index = function(tuple, key)
      return position[key] and rawget(tuple, position[key])
    end,
  }
  return setmetatable(class, {
    __call = function(_, ...)
      local tuple = { __class = class, n = #fields, ... }
      for i = select("#", ...) + 1, #fields do tuple[i] = defaults[fields[i]] end
      return setmetatable(tuple, meta)
    end,
  })
end

function py.replace(tuple, changes)
  local values = {}
  for i, field in ipairs(tuple.__class.__fields) do
    values[i] = changes[field]
    if values[i] == nil then values[i] = tuple[i] end
  end
  return tuple.__class(unpack_table(values, 1, tuple.n))
end

-- Exceptions: errors that are instances of a class; any other error is a fault of this file and passes through.
function py.try(body, handlers, otherwise, finally)
  local is_fine, result = pcall(body)
  if is_fine then
    if otherwise and not result then is_fine, result = pcall(otherwise) end
  elseif type(result) == "table" and result.__class then
    for i = 1, #handlers do
      if derives(result.__class, handlers[i][1]) then
        is_fine, result = pcall(handlers[i][2], result)
        break
      end
    end
  end
  if finally then
    local last = finally()
    if last then return last end
  end
  if not is_fine then error(result, 0) end
  return result
end

-- The standard library

local SIZES = { B = 1, b = 1, H = 2, h = 2, I = 4, i = 4, Q = 8 }

function py.calcsize(layout)
  local size = 0
  for code in layout:gmatch("%a") do size = size + SIZES[code] end
  return size
end

function py.unpack_from(layout, data, offset)
  local out, order = py.list(), layout:sub(1, 1) == ">" and "big" or "little"
  data, offset = data.raw, offset or 0
  for code in layout:gmatch("%a") do
    local size = SIZES[code]
    local value = py.int_from_bytes(data:sub(offset + 1, offset + size), order)
    if code:lower() == code and value >= 2 ^ (8 * size - 1) then value = value - 2 ^ (8 * size) end
    py.append(out, value)
    offset = offset + size
  end
  return out
end

local CRC = {}
for byte = 0, 255 do
  local value = byte
  for _ = 1, 8 do
    value = value % 2 == 1 and xor32(math.floor(value / 2), 0xEDB88320) or math.floor(value / 2)
  end
  CRC[byte] = value
end

function py.crc32(data, start)
  data = raw_of(data)
  local crc = xor32(start or 0, 0xFFFFFFFF)
  for i = 1, #data do
    crc = xor32(math.floor(crc / 256), CRC[xor32(crc % 256, data:byte(i))])
  end
  return xor32(crc, 0xFFFFFFFF)
end
