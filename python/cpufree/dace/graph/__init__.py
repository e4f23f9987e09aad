"""DaCe's side: programs are parsed, mended, and handed on as schedule trees."""
