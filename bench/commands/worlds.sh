# The world models of docs/results/worlds.md.

pawl wm data --env desk --env.level easy --mix expert:300,epsilon=0.3:150,random:50 --out data/desk
npm run bench -- wm-scale --data data/desk --sizes 50,150,450 --models small --epochs 6 --optimizer.warmup 10

pawl wm data --env textworld --env.data made-up --mix expert:160,epsilon=0.3:60,random:30 --test 0.2 \
  --step-limit 30 --out data/textworld
npm run bench -- wm-scale --data data/textworld --sizes 50,200 --models small --epochs 5 --optimizer.warmup 10 \
  --model.max-context 2048

pawl wm data --env scienceworld --env.types find-non-living-thing --mix expert:120 --test 0.2 --out data/sw
npm run bench -- wm-scale --data data/sw --sizes 24 --models small --epochs 15 --optimizer.warmup 10 --model.max-context 2048
