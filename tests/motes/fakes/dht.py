"""A fake of the module dht: 21.5 °C and 40.2 %.

Faults
    dht_silent    this measurement raises OSError, the next does not
"""

import fake


class DHT22:
    """A sensor that always measures the same."""

    def __init__(self, pin):
        pass

    def measure(self):
        """Measure; raise OSError if the sensor does not answer."""
        if fake.occurs_once("dht_silent"):
            raise OSError(110)

    def temperature(self):
        """Return the temperature in °C."""
        return 21.5

    def humidity(self):
        """Return the relative humidity in %."""
        return 40.2
