"""Runners: adapters that ask an agent."""
