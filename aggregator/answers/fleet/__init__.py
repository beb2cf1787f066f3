"""How a fleet is: its devices and service, what needs somebody, what operators changed."""
