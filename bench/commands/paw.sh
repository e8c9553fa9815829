# The runs of docs/results/paw.md: success with and without PaW, for models from scratch.

# Five seeds where no other number is given. The first table, 2026-11-15, 2 × Intel Xeon, Node
# 20.20.2, at commit 307781e, where `tiny` had four layers of width 96:

pawl bench observations --out paw --seeds 0,1,2,3,4 --jobs 2 --threads 1 --train.updates 12 \
  --train.evaluation.every 12 --train.evaluation.tasks 64 --eval-tasks 300

# PPO, the sparse case and the sweeps: 2026-11-15, 2 × Intel Xeon, Node 20.20.2, with today's
# recipe plus an entropy bonus and evaluation at temperature 0.4. Each command also had
# `--train.objective.entropy 0.002 --train.evaluation.temperature 0.4 --threads 1
# --train.evaluation.every 0 --train.gradient-sample 4 --eval-tasks 500 --seeds 0,1,2,3,4`:

pawl bench observations --algorithms ppo --arms plain,paw --train.updates 12 --train.objective.value-coefficient 0.01
pawl bench observations --settings sparse+actions-only --arms plain,paw,ce,paw+cap=0.1,paw+skip,paw+kl=0.01 --train.updates 24
pawl bench observations --settings actions-only --arms plain,paw,alpha=0.25,alpha=0.5,alpha=1,rho=0.1,rho=0.5 --train.updates 12

# All others: 2026-11-15, 16 cores of an Intel Xeon shared with other work, Node 20.20.2, commit
# 1dbec84, where the preset `tiny` had three layers of width 128 and the recipe's learning rate was
# 4e-4. Each command also had `--threads 1 --train.updates 12 --train.evaluation.every 12
# --train.evaluation.tasks 64 --train.gradient-sample 4 --train.invalid-action-limit 3 --eval-tasks
# 500`:

pawl bench observations --settings actions-only          --seeds 0,1,2,3,4,5,6,7 --arms plain,paw,ce
pawl bench observations --settings two-step+actions-only --seeds 0,1,2,3,4,5,6,7 --arms plain,paw,ce
pawl bench observations --settings noise+actions-only    --seeds 0,1,2,3,4,5,6,7 --arms plain,paw,ce
pawl bench observations --algorithms gigpo,rloo,ppo      --seeds 0,1,2,3,4 --arms plain,paw

# The rows of PPO had a shared critic (`--train.critic.weights shared` now). `gradient-sample` is
# `--train.gradients.every` now. `cap`, `ce-length` and `skip` have been removed; commit 74aad12 is
# the last that has them.

# Loss or size

pawl bench observations --settings actions-only --arms plain,paw,ce,echo,ce-length --seeds 0,1,2,3,4 --jobs 16 --threads 1 --train.updates 12 --train.evaluation.every 0 --eval-tasks 500

# PPO's critic, for each seed S of 0, 1, 2

pawl train --quick --updates 0 --seed S --engine.threads 1 --evaluation.every 0 --out wS
pawl train --quick --advantage ppo --seed S --engine.threads 1 --model.start wS --warm-start.episodes 0 \
  --evaluation.every 18 --gradient-sample 0          # and with --critic.weights shared --objective.value-coefficient 0.01, 1
