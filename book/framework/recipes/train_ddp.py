"""torchrun --standalone --nproc_per_node=2 train_ddp.py"""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

gpu, local = torch.cuda.is_available(), int(os.environ["LOCAL_RANK"])  # of this node
device = torch.device("cuda", local) if gpu else torch.device("cpu")
if gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if gpu else "gloo")  # torchrun told it where and who

torch.manual_seed(0)  # the same data on every rank: the sampler deals them out
data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
model = torch.nn.Linear(8, 1).to(device)
ddp = DistributedDataParallel(model, device_ids=[local] if gpu else None)
update = torch.optim.SGD(ddp.parameters(), lr=0.1)
sampler = DistributedSampler(data)  # another share for every rank
for epoch in range(2):
    sampler.set_epoch(epoch)  # another order in every epoch
    for x, y in DataLoader(data, batch_size=8, sampler=sampler):  # 8 on each rank
        update.zero_grad()
        loss = torch.nn.functional.mse_loss(ddp(x.to(device)), y.to(device))
        loss.backward()  # here the ranks meet, and average
        update.step()
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "model.pt")  # ddp's own names begin with "module."
dist.destroy_process_group()
