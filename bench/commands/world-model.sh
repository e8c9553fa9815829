# The runs of docs/results/world-model.md.
#
# SERVER is an engine server (pawl serve engine), one for each model trained at the same time; GAMES is the folder of
# ALFWorld's games; AGENT is a finished run of pawl train --updates 114. The figures are from before 2026-11-16, when
# tokenizers were also built from test text; household's and ALFWorld's vocabularies are the same without it.
#
# Of the models that are not here, base had --optimizer.learning-rate 6e-4 --epochs 13, and tiny 2e-3; smaller data sets
# differ in --budget and --epochs (trajectories: epochs):
#   household small   4,000: 8; 1,000: 42; 250: 168
#   household tiny    12,000: 4; 4,000: 12; 1,000: 48; 250: 192
#   ALFWorld small    3,000: 10; 1,000: 37
#   ALFWorld tiny     6 epochs
#   WebShop           the longer training: 6 epochs

H="--env.rooms 2 --env.receptacles 6 --env.objects 3"
for s in 0 1; do pawl wm data $H --mix expert:600,seeker:1000,epsilon=0.3:1400,epsilon=0.7:600,random:200,AGENT:1400,AGENT/reference:800 --step-limit 20 --test 0 --seed $s --out house-$s; done
for v in valid_seen valid_unseen; do pawl wm data $H --split $v --mix expert:50,seeker:50,epsilon=0.3:50,AGENT:50 --step-limit 20 --test 1 --out house-$v; done
A="--env alfworld --env.data GAMES --step-limit 30"
for s in 0 1 2 3; do pawl wm data $A --mix expert:500,epsilon=0.3:700,epsilon=0.6:200 --test 0 --seed $s --out alf-$s; done
for s in 4 5 6 7; do pawl wm data $A --mix expert:400,epsilon=0.3:700,epsilon=0.6:400,random:100 --test 0 --seed $s --out alf-$s; done
for v in valid_seen valid_unseen; do pawl wm data $A --split $v --mix expert:70,epsilon=0.3:70 --test 1 --out alf-$v; done
S="--env webshop --env.data made-up --env.products 1000"
for s in 0 1; do pawl wm data $S --mix expert:2000,epsilon=0.3:3000,epsilon=0.6:2400,random:600 --test 0.02 --seed $s --out shop-$s; done
O="--engine SERVER --optimizer.beta2 0.98 --optimizer.warmup 100"
pawl wm train $O --data house-0,house-1,house-valid_seen --budget household=12000 --model.start small --model.max-context 768 --epochs 12 --batch 16 --optimizer.learning-rate 1e-3 --out house-small
pawl wm train $O --data alf-0,alf-1,alf-2,alf-3,alf-4,alf-5,alf-6,alf-7,alf-valid_seen --budget alfworld=11996 --model.start small --model.max-context 1792 --epochs 18 --batch 16 --optimizer.learning-rate 1e-3 --out alf-small
pawl wm train $O --data shop-0,shop-1 --budget webshop=15600 --model.start small --model.max-context 5120 --epochs 2 --batch 8 --optimizer.learning-rate 1e-3 --out shop-small
pawl wm eval fidelity --engine SERVER --model house-small --data house-valid_seen --part all --trajectories 200 --max-tokens 256 --mistakes 25
pawl wm eval fidelity --engine SERVER --model alf-small --data alf-valid_seen --part all --trajectories 140 --max-tokens 256
pawl wm eval fidelity --engine SERVER --model shop-small --data shop-0 --part all --trajectories 100 --max-tokens 600
pawl wm eval consistency $H --engine SERVER --model house-small --policies expert,seeker,epsilon=0.3,epsilon=0.6,AGENT,AGENT/reference --split valid_seen --tasks 128 --step-limit 20 --max-tokens 256
pawl wm eval consistency $H --engine embedded --model house-small/model --policies AGENT,AGENT/reference --split valid_seen --tasks 500 --step-limit 20 --max-tokens 256
pawl wm eval consistency $A --engine SERVER --model alf-small --policies expert,epsilon=0.3,epsilon=0.6,epsilon=0.9 --split valid_seen --tasks 64 --max-tokens 256
for e in 0.6 0.3; do for m in shop-small exact; do pawl wm eval verifier $S --policy epsilon=$e --tasks 200 --engine SERVER --model $m --max-tokens 600; done; done

# Synthesis and warm start

Q="--env.rooms 1 --env.receptacles 4 --env.objects 3 --env.families pick,look"
pawl train --quick --engine.threads 1 --evaluation.every 0 --out agent
pawl wm data $Q --mix expert:1000,seeker:1800,epsilon=0.3:1800,epsilon=0.7:800,random:200,agent:800 --step-limit 10 --test 0 --seed 0 --out house
pawl wm data $Q --split valid_seen --mix expert:45,seeker:45,epsilon=0.3:45,agent:45 --step-limit 10 --test 1 --out house-seen
pawl wm data $Q --split valid_unseen --mix expert:45,seeker:45,epsilon=0.3:45,agent:45 --step-limit 10 --test 1 --out house-unseen
pawl wm train --engine.threads 1 --data house,house-seen --model.start tiny --model.max-context 512 --epochs 3 --batch 8 --optimizer.learning-rate 2e-3 $O --out world
pawl wm eval fidelity --engine.threads 1 --model world --data house-seen --part all
pawl wm eval fidelity --engine.threads 1 --model world --data house-unseen --part all
pawl wm eval consistency $Q --engine.threads 1 --model world --policies agent --split valid_seen --tasks 200 --step-limit 10
npm run bench -- wm-synth $Q --engine.threads 1 --world world --policy agent --episodes 1500 --model.start tiny --model.max-context 512 --sft.epochs 1 --sft.batch 8 --sft.optimizer.learning-rate 2e-3 --sft.optimizer.schedule cosine --sft.optimizer.warmup 20 --evaluation.splits valid_seen,valid_unseen --evaluation.tasks 500 --evaluation.temperature 0.4 --step-limit 10 --seeds 0,1,2
npm run bench -- wm-warm-start --world.data house --world.budget household=3000 --world.epochs 1 --world.evaluation.every 0 --train.env.rooms 1 --train.env.receptacles 4 --train.env.objects 3 --train.env.families pick,look --train.model.max-context 512 --train.groups 8 --train.minibatch 256 --train.step-limit 10 --train.engine.threads 1 --train.updates 24 --train.evaluation.every 12 --train.evaluation.tasks 300 --train.warm-start.episodes 600 --seeds 0,1,2 --out warm
