"""Index notation: what the user asks for, before anything is known of formats, sizes or loops."""
