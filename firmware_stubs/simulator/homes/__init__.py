"""A simulated fleet of homes on one MQTT connection, speaking the device's protocol."""
