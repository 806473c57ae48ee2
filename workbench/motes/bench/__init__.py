"""Preparation of a bench: the boards on a desk, each of which runs one node.

    devices.py      serial ports with their USB identity, and the match of ports with boards of the bench
    bench_file.py   bench.json: node numbers, USB identities, settings without secrets, digests
    ports.py        the ports at which the boards of a bench file are connected now
    answers.py      what answers at a port: the workbench's program, MicroPython, or nothing
    repl.py         MicroPython's raw REPL; the only module that uses mpremote
    provision.py    copy the program and the settings onto a board, and verify them
    flash.py        write a firmware file: by esptool, or onto a bootloader drive
    drives.py       bootloader drives, and the format UF2

Nothing in this package was tried on hardware. Its tests use MicroPython's port for Unix behind a pty, and MicroPython
on a micro:bit that QEMU emulates. Instead of hardware, the tests use lists of serial ports and recordings of esptool
from public sources, a model of the ESP32's bootloader, and folders as bootloader drives.
"""
