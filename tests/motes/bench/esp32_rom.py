"""The bootloader of an ESP32 behind a pty: the commands that esptool uses to write and verify the flash.

The layout of commands and answers is that of Espressif's "Serial Protocol". The stub that esptool uploads is not
executed: its greeting is sent, and the same commands are answered as the stub does, with two bytes of status.

`RECORDED` has exchanges with real ESP32s, from traces that users of esptool have published. They replace the model's
answers if ``is_replayed``.
"""

import hashlib
import os
import select
import struct
import threading
import zlib

MAGICS = {"ESP32": 0x00F01D83, "ESP32-S2": 0x000007C6}
SYNC, READ_REG, WRITE_REG, SECURITY = 0x08, 0x0A, 0x09, 0x14
MEM_BEGIN, MEM_END, MEM_DATA = 0x05, 0x06, 0x07
FLASH_BEGIN, FLASH_DATA, FLASH_END = 0x02, 0x03, 0x04
DEFLATED_BEGIN, DEFLATED_DATA, DEFLATED_END = 0x10, 0x11, 0x12
MD5 = 0x13
MAGIC_REGISTER = 0x40001000
SPI_W0 = 0x3FF42080
# Request -> answers, both with their delimiters. Sources: issues of github.com/espressif/esptool.
RECORDED = {
    # synchronize: request of issue 547, answers of issue 698
    bytes.fromhex("c00008240000000000" + "07071220" + "55" * 32 + "c0"): (
        [bytes.fromhex("c0010804000720555500000000c0")] * 8
    ),
    # read the register that distinguishes chips (issue 698)
    bytes.fromhex("c0000a04000000000000100040c0"): [bytes.fromhex("c0010a0400831df00000000000c0")],
    # read a word of the fuses, which has the chip's revision (issue 698)
    bytes.fromhex("c0000a0400000000000ca0f53fc0"): [bytes.fromhex("c0010a040000a2000000000000c0")],
}
FLASH_ID = 0x164020  # 4 MB
FLASH_B = 4 * 1024 * 1024


class Esp32Rom:
    """A bootloader at ``port``; ``flash`` is its flash. It hangs up after ``unplug_after_blocks`` blocks of data.

    ``requests`` are those that it received, with their delimiters.
    """

    def __init__(self, chip="ESP32", is_replayed=False):
        import tty

        self.chip = chip
        self.is_replayed = is_replayed
        self.requests = []
        self.flash = bytearray(b"\xff" * FLASH_B)
        self.unplug_after_blocks = None
        self.is_damaged = False
        self.blocks = 0
        self._is_stub = False
        self._value = 0  # of the last register: later answers of a real ROM still have it (issue 570)
        self._received = b""
        self._host, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join(10)
        if self.port is not None:
            self._unplug()

    def _unplug(self):
        self.port = None
        os.close(self._host)
        os.close(self._slave)

    def _run(self):
        while not self._is_over.is_set() and self.port is not None:
            if select.select([self._host], [], [], 0.05)[0]:
                self._received += os.read(self._host, 4096)
                while self._received.count(b"\xc0") >= 2 and self.port is not None:
                    frame, self._received = self._received[1:].split(b"\xc0", 1)
                    request = b"\xc0" + frame + b"\xc0"
                    self.requests.append(request)
                    if self.is_replayed and not self._is_stub and request in RECORDED:
                        os.write(self._host, b"".join(RECORDED[request]))
                        continue
                    frame = frame.replace(b"\xdb\xdc", b"\xc0").replace(b"\xdb\xdd", b"\xdb")
                    if len(frame) >= 8:
                        self._take(frame[1], frame[8:])

    def _send(self, body):
        os.write(self._host, b"\xc0" + body.replace(b"\xdb", b"\xdb\xdd").replace(b"\xc0", b"\xdb\xdc") + b"\xc0")

    def _answer(self, command, value=None, data=b"", status=b"\0\0"):
        value = (0 if self._is_stub else self._value) if value is None else value
        data += status + (b"" if self._is_stub else b"\0\0")
        self._send(struct.pack("<BBHI", 1, command, len(data), value) + data)

    def _take(self, command, data):
        if command == SYNC:
            for _ in range(8):
                self._answer(command, 0 if self._is_stub else 0x20120707)
        elif command == SECURITY:
            self._answer(command, status=b"\1\5")  # The ESP32 does not have this command.
        elif command == READ_REG:
            registers = {MAGIC_REGISTER: MAGICS[self.chip], SPI_W0: FLASH_ID}
            self._value = registers.get(struct.unpack("<I", data)[0], 0)
            self._answer(command, self._value)
        elif command == MEM_END:
            self._answer(command)
            self._is_stub = True
            self._send(b"OHAI")
        elif command in (FLASH_BEGIN, DEFLATED_BEGIN):
            _, _, _, self._at = struct.unpack_from("<4I", data)
            self._inflate = zlib.decompressobj()
            self._answer(command)
        elif command in (FLASH_DATA, DEFLATED_DATA):
            size_B = struct.unpack_from("<I", data)[0]
            block = data[16 : 16 + size_B]
            block = self._inflate.decompress(block) if command == DEFLATED_DATA else block
            if not self.is_damaged:
                self.flash[self._at : self._at + len(block)] = block
            self._at += len(block)
            self.blocks += 1
            if self.blocks == self.unplug_after_blocks:
                self._unplug()
                return
            self._answer(command)
        elif command == MD5:
            start, size_B = struct.unpack_from("<II", data)
            digest = hashlib.md5(self.flash[start : start + size_B])
            self._answer(command, data=digest.digest() if self._is_stub else digest.hexdigest().encode())
        else:
            self._answer(command)
