# The runs of docs/results/observations-log.md.
#
# RECIPE is recipes/alfworld-smollm2.ts under the key train, with evaluation.splits valid_seen,valid_unseen; SHOP is
# recipes/webshop-smollm2.ts under train. "…" stands for the settings of the line before.
# pawl bench observations RUNS --at 50 compares what is there after 50 updates.

BENCH() {
  pawl bench observations --config RECIPE --seeds 0,1,2 --eval-tasks 140 \
    --engines http://127.0.0.1:8101,…,http://127.0.0.1:8109 \
    --train.optimizer.learning-rate 4e-5 --train.evaluation.every 0 "$@"
}

pawl rollout --env alfworld --env.order 0 --policy expert --policy.epsilon 0.3 --groups 1500 --group-size 1 \
  --step-limit 30 --prompt.style chat --seed 7 --out runs/teacher
pawl model convert SmolLM2-135M-Instruct.Q4_1.gguf --out smollm2
export CUDA_MPS_PIPE_DIRECTORY=/tmp/mps; nvidia-cuda-mps-control -d                            # but for 2026-11-16
for i in 1 2 3 4 5 6 7 8 9; do pawl serve engine --port 810$i --checkpoints checkpoints --threads 1 --sample-rows 136 & done
pawl train --config recipes/alfworld-smollm2.ts --model.start smollm2 --updates 0 --seed 7 \
  --engine http://127.0.0.1:8101 --engine.copy --out runs/start                                 # imitated actions
  … --warm-start.sft.observation-weight 0.3 --warm-start.sft.mean together                       # learnt observations
  … --warm-start.episodes 100                                                                    # hardly imitated

BENCH --start runs/start --arms plain,paw,echo --train.updates 30                                # 50: --train.updates 95
BENCH --start runs/start --arms plain,echo,margin --train.updates 100 --train.evaluation.every 25 --train.gradients.every 50
BENCH … --arms ce-length --train.paw.gradient-length-share 0.25 …
BENCH --start runs/start-s100 --arms plain,paw --train.updates 30 --train.advantage.penalty 0 --train.optimizer.learning-rate 1e-5
BENCH --start runs/start --algorithms gigpo --arms plain,paw --train.updates 30                  # 100: --arms plain,echo

# What the agents know
pawl rollout --checkpoint runs/start --split valid_unseen --groups 134 --group-size 1 --temperature 0.4 --seed 9 … --out runs/play-unseen
pawl rwml --model.start RUN --collect.runs runs/play-unseen --updates 0 --held-out.share 0.9 --held-out.triplets 600 \
  --held-out.samples 2 --reward rouge --prediction-tokens 96 --evaluation.tasks 1 --engine.address … --out runs/known

# WebShop
pawl rollout --env webshop --env.observations lines --env.limits.observation 3000 --policy expert --groups 1200 \
  --group-size 1 --step-limit 10 --prompt.style chat --seed 7 --out runs/shopper
pawl train --config recipes/webshop-smollm2.ts --model.start smollm2 --updates 0 --seed 7 --engine … --engine.copy --out runs/start-shop
pawl bench observations --config SHOP --start runs/start-shop --arms plain,paw,echo --seeds 0,1,2 --eval-tasks 250 \
  --train.updates 30 --train.evaluation.every 0 --train.checkpoint-every 30 --engines … --out runs/shop
