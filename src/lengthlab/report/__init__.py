"""What people look at: tables and figures, made of run folders alone. No torch."""
