# The runs of docs/results/alfworld-gpu.md.

# `ALFWORLD_DATA` names the folder of ALFWorld's games. The teacher's episodes, 17,100 in all:

for seed in 0 1; do pawl rollout --env alfworld --env.order 0 --policy expert --policy.epsilon 0.3 --groups 3553 --group-size 1 \
  --step-limit 30 --prompt.style compact --prompt.history all --seed $seed --out runs/teacher-$seed; done
for seed in 10 11 12 13 14 15 16 17 18 19; do pawl rollout --env alfworld --env.order 0 --policy expert --policy.epsilon 0.3 \
  --groups 1000 --group-size 1 --step-limit 30 --prompt.style compact --prompt.history all --seed $seed --out runs/teacher-$seed; done

# Then twelve servers and the comparison:

for port in $(seq 8101 8112); do
  pawl serve engine --port $port --checkpoints checkpoints --threads 1 --sample-rows 136 &
done
pawl bench observations --config recipes/alfworld-scratch-paw.ts --engines http://127.0.0.1:8101,…,http://127.0.0.1:8112 \
  --train.warm-start.runs runs/teacher-0,runs/teacher-1,runs/teacher-10,…,runs/teacher-19 --train.warm-start.episodes 17100
