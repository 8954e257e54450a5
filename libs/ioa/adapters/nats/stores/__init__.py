"""Records in key-value buckets, streams and the object store, one file per kind."""
