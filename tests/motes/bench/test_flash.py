"""Firmware is written by esptool to a model of the ESP32's bootloader, and to folders in place of bootloader drives."""

import errno
import os
import random
import struct
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.families import examples
from tests.motes.bench.esp32_rom import RECORDED, Esp32Rom
from tests.motes.bench.recorded import DRIVES, drive_info
from workbench.errors import LinkError
from workbench.motes.bench import drives, flash
from workbench.motes.bench.drives import Drive, copy_uf2, find_drives, uf2_chip
from workbench.motes.bench.flash import Firmware, flash_drive, flash_esp32, read_firmware

RP2040, RP2350, RP2350_RISCV, ABSOLUTE = 0xE48BFF56, 0xE48BFF59, 0xE48BFF5A, 0xE48BFF57
INFO, INFO_RP2350 = drive_info("pico-w"), drive_info("pico-2-w")


def make_image(chip=0, size_B=60_000):
    """Return an image for an ESP32 whose content is random, except for the fields that are checked."""
    image = bytearray(random.Random(1).randbytes(size_B))
    image[0], image[1], image[12:14] = 0xE9, 0, chip.to_bytes(2, "little")
    return bytes(image)


def make_uf2(blocks=200, family=RP2040, flags=0x2000):
    """Return a UF2 file of blocks that each have 256 bytes of data."""
    return b"".join(
        struct.pack(
            "<8I476sI",
            0x0A324655,
            0x9E5D5157,
            flags,
            256 * number,
            256,
            number,
            blocks,
            family,
            b"\1" * 256,
            0x0AB16F30,
        )
        for number in range(blocks)
    )


def as_firmware(data, name="firmware.bin"):
    return Firmware(name, data, "digest", data[:4] == b"UF2\n")


@pytest.fixture
def drive(tmp_path):
    (tmp_path / "INFO_UF2.TXT").write_text(INFO)
    return tmp_path


@pytest.fixture
def make_rom():
    """Return a function that makes a bootloader."""
    pytest.importorskip("esptool", reason="esptool is missing: pip install esptool")
    pytest.importorskip("termios", reason="this system has no ptys")
    roms = []

    def make(*arguments):
        roms.append(Esp32Rom(*arguments))
        return roms[-1]

    yield make
    for rom in roms:
        rom.__exit__()


def test_image_is_in_the_flash_at_the_address_of_the_chip(make_rom):
    rom, image, advances = make_rom(), make_image(), []
    chip = flash_esp32(
        lambda: rom.port, as_firmware(image), None, lambda *sizes_B: advances.append(sizes_B), connect="no-reset"
    )
    assert chip == "ESP32" and rom.flash[0x1000 : 0x1000 + len(image)] == image
    assert advances == sorted(advances) and advances[-1] == (len(image), len(image)) and len(advances) > 2


def test_recorded_answers_of_a_real_esp32_lead_to_its_flash(make_rom):
    rom, image = make_rom("ESP32", True), make_image(size_B=5000)
    assert flash_esp32(lambda: rom.port, as_firmware(image), connect="no-reset") == "ESP32"
    assert rom.flash[0x1000 : 0x1000 + len(image)] == image
    assert set(RECORDED) <= set(rom.requests)  # esptool still sends the requests that were recorded


def test_model_of_the_bootloader_answers_as_the_recorded_one(make_rom):
    serial = pytest.importorskip("serial")
    rom = make_rom()
    with serial.Serial(rom.port, timeout=1) as line:
        for request, answers in RECORDED.items():
            line.write(request)
            for answer in answers:
                received = line.read(len(answer))
                # direction, command, size | value | status. The value of a synchronization has no meaning.
                assert (received[:5], received[9:]) == (answer[:5], answer[9:])
                is_chip = request[9:13] == bytes.fromhex("00100040")
                assert not is_chip or received == answer


def test_image_for_another_chip_is_refused_before_the_flash_changes(make_rom):
    rom = make_rom()
    with pytest.raises(LinkError, match="s3.bin is for ESP32-S3, and the board has ESP32"):
        flash_esp32(lambda: rom.port, as_firmware(make_image(9), "s3.bin"), connect="no-reset")
    assert rom.flash.count(0xFF) == len(rom.flash)


def test_flashing_begins_again_when_the_board_returns_at_another_port(make_rom):
    roms = [make_rom(), make_rom()]
    roms[0].unplug_after_blocks = 2
    lines, image = [], make_image()
    flash_esp32(
        lambda: next((rom.port for rom in roms if rom.port), None), as_firmware(image), lines.append, connect="no-reset"
    )
    assert len(lines) == 1 and "is lost" in lines[0] and "connect the board again" in lines[0]
    assert roms[1].flash[0x1000 : 0x1000 + len(image)] == image


def test_board_that_does_not_return_to_be_flashed_ends_in_a_sentence(make_rom):
    rom = make_rom()
    rom.unplug_after_blocks = 1
    with pytest.raises(LinkError, match="not connected"):
        flash_esp32(lambda: rom.port, as_firmware(make_image()), connect="no-reset", patience_s=0)


def test_flash_that_differs_from_the_file_ends_in_a_sentence(make_rom):
    rom = make_rom()
    rom.is_damaged = True
    with pytest.raises(LinkError, match="writing failed"):
        flash_esp32(lambda: rom.port, as_firmware(make_image()), connect="no-reset")


def test_missing_port_ends_in_a_sentence(make_rom):
    make_rom()
    with pytest.raises(LinkError, match="^/dev/none cannot be opened: .*No such file or directory"):
        flash_esp32(lambda: "/dev/none", as_firmware(make_image()), connect="no-reset")


def test_missing_esptool_names_its_extra(monkeypatch):
    monkeypatch.setattr(flash.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LinkError, match=r"esptool is missing: pip install 'sensor-pubsub-workbench\[boards\]'"):
        flash_esp32(lambda: "COM3", as_firmware(make_image()))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "neither UF2 nor an image"),
        (b"\x7fELF" + bytes(100), "neither UF2 nor an image"),
        (make_image(77), "chip number 77; it must be for one of ESP32"),
    ],
)
def test_other_files_are_refused(tmp_path, data, sentence):
    path = tmp_path / "file.bin"
    path.write_bytes(data)
    with pytest.raises(LinkError, match=sentence):
        read_firmware(path)
    with pytest.raises(LinkError, match="nothing.bin: "):
        read_firmware(tmp_path / "nothing.bin")


def test_uf2_is_copied_onto_the_drive(drive, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "pico.uf2"
    path.write_bytes(make_uf2())
    firmware, advances = read_firmware(path), []
    assert flash_drive(firmware, drive, None, lambda *sizes_B: advances.append(sizes_B)) == drive
    assert (drive / "firmware.uf2").read_bytes() == make_uf2()
    assert advances[-1] == (len(make_uf2()), len(make_uf2())) and len(firmware.digest) == 64


def test_drive_is_recognized_by_its_information_file(drive, tmp_path):
    (tmp_path / "usb stick").mkdir()
    assert find_drives([drive, tmp_path / "usb stick", tmp_path / "missing"]) == [
        Drive(drive, "RPI-RP2", "Raspberry Pi RP2")
    ]
    assert find_drives([drive])[0].chip == "RP2040"
    (drive / "INFO_UF2.TXT").write_bytes(b"\xff\0garbage")
    assert find_drives([drive])[0].chip is None
    assert find_drives() is not None and drives.mount_points() is not None


@pytest.mark.parametrize("name", DRIVES)
def test_recorded_drive_names_its_chip(drive, name):
    (drive / "INFO_UF2.TXT").write_text(drive_info(name))
    [bootloader] = find_drives([drive])
    assert bootloader.chip == DRIVES[name]["chip"] and bootloader.model == DRIVES[name]["model"]
    assert DRIVES[name]["source"]


@pytest.mark.parametrize("platform", ["win32", "darwin", "linux"])
def test_each_system_has_places_for_drives(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    assert all(path.parts for path in drives.mount_points())


@pytest.mark.parametrize(
    ("info", "chip", "families", "other", "other_families"),
    [
        (INFO, "RP2040", [RP2040], "RP2350", [RP2350, RP2350_RISCV]),
        (INFO_RP2350, "RP2350", [RP2350, RP2350_RISCV], "RP2040", [RP2040]),
    ],
    ids=["Pico W", "Pico 2 W"],
)
def test_drive_takes_the_families_of_its_chip_and_refuses_those_of_the_other(
    drive, info, chip, families, other, other_families
):
    (drive / "INFO_UF2.TXT").write_text(info)
    [bootloader] = find_drives([drive])
    assert bootloader.chip == chip
    for family in other_families:
        with pytest.raises(LinkError, match=rf"pico.uf2 is for {other}, and the board at .* has {chip}"):
            copy_uf2(make_uf2(family=family), "pico.uf2", bootloader)
        assert not (drive / "firmware.uf2").exists()
    for family in families:
        # The SDK puts a block of the family "absolute" first into files for the RP2350.
        file = make_uf2(1, ABSOLUTE) + make_uf2(10, family) if chip == "RP2350" else make_uf2(10, family)
        copy_uf2(file, "pico.uf2", bootloader)
        assert (drive / "firmware.uf2").read_bytes() == file


def test_uf2_for_a_chip_that_is_not_known_is_refused(drive):
    with pytest.raises(LinkError, match="family ADA52840 is for another chip"):
        uf2_chip(make_uf2(family=0xADA52840), "nrf.uf2")
    (drive / "INFO_UF2.TXT").write_text(INFO_RP2350.replace("Board-ID: RP2350", "Board-ID: OTHER"))
    with pytest.raises(LinkError, match=r"the chip of Raspberry Pi RP2350 \(OTHER\) is not known"):
        copy_uf2(make_uf2(), "pico.uf2", find_drives([drive])[0])


def test_drive_that_disappears_is_awaited_and_the_copy_begins_again(drive, monkeypatch):
    info, lines = drive / "INFO_UF2.TXT", []
    fsync, calls = drives.os.fsync, []

    def unplug(descriptor):
        calls.append(descriptor)
        if len(calls) == 2:
            info.unlink()
            raise OSError(19, "No such device")
        return fsync(descriptor)

    def report(text):
        lines.append(text)
        if "BOOTSEL while" in text:
            info.write_text(INFO)

    monkeypatch.setattr(drives.os, "fsync", unplug)
    flash_drive(as_firmware(make_uf2(), "pico.uf2"), drive, report)
    assert "disappeared after 65,536 of 102,400 bytes (No such device)" in lines[0]
    assert (drive / "firmware.uf2").read_bytes() == make_uf2()


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EROFS])
def test_drive_that_is_full_or_read_only_is_an_error_and_not_awaited(drive, monkeypatch, reason):
    def refuse(descriptor):
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(drives.os, "fsync", refuse)
    text = rf"cannot be written after 32,768 of 102,400 bytes \({os.strerror(reason)}\); check that it is mounted"
    with pytest.raises(LinkError, match=text):
        flash_drive(as_firmware(make_uf2(), "pico.uf2"), drive)


def test_drive_may_disappear_after_the_last_block(drive, monkeypatch):
    def restart(descriptor):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(drives.os, "fsync", restart)
    flash_drive(as_firmware(make_uf2(10), "pico.uf2"), drive)


def test_no_drive_and_several_drives_end_in_a_sentence(drive, monkeypatch):
    with pytest.raises(LinkError, match="no bootloader drive appeared; hold BOOTSEL"):
        flash_drive(as_firmware(make_uf2()), drive / "none", patience_s=0)
    found_drive = find_drives([drive])[0]
    monkeypatch.setattr(flash, "find_drives", lambda folders: [found_drive, found_drive])
    with pytest.raises(LinkError, match="several bootloader drives"):
        flash_drive(as_firmware(make_uf2()))


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(0, 10), st.integers(0, 511), st.binary(min_size=1, max_size=8), st.integers(0, 6000))
def test_damaged_uf2_is_accepted_or_ends_in_a_sentence(block, place, data, size_B):
    damaged = bytearray(make_uf2(10))
    start = min(block * 512 + place, len(damaged) - len(data))
    damaged[start : start + len(data)] = data
    for variant in (bytes(damaged), bytes(damaged[:size_B]), data):
        try:
            assert uf2_chip(variant, "x.uf2") in ("RP2040", "RP2350")
        except LinkError as error:
            assert str(error).startswith("x.uf2: ")


def test_uf2_without_its_last_or_a_middle_block_is_refused():
    file = make_uf2(10)
    with pytest.raises(LinkError, match="ends before its last block"):
        uf2_chip(file[:-512], "x.uf2")
    with pytest.raises(LinkError, match="block 4 is missing"):
        uf2_chip(file[: 4 * 512] + file[5 * 512 :], "x.uf2")
