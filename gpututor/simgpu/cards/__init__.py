"""Several cards in one process: copies between them, DataParallel and DistributedDataParallel."""
