"""Whether a plan's text computes what a call computes, shown with entries that are symbols."""
