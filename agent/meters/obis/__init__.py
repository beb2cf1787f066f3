"""Meters that number what they tell by OBIS: P1 ports, SML, and the text of IEC 62056-21."""
