#!/usr/bin/env bash
# Installs the packed packages in empty projects, as users do: with npm 10 and 11, without a flag, and with nothing but
# the tarballs and the registry. Then measures, compiles a program that imports the library, and follows the tutorials.
#
#   packaging/check.sh [FOLDER [small]]     a folder for the tarballs and the projects (default: a temporary one); `small`
#                                           packs for this platform only
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=${1:-$(mktemp -d)}
mkdir -p "$scratch"
node packaging/pack.js "$scratch" ${2:+this-platform}
platform=$(node -p 'process.platform + "-" + process.arch')
tarballs=("$scratch"/pawl-[0-9]*.tgz "$scratch"/pawl-onnx-"$platform"-*.tgz)

at_most() { # MEGABYTES WHAT PATH…: refuses more of them
  local megabytes=$(($(du -sbc "${@:3}" | tail -1 | cut -f1) / 1000000))
  echo "$2: $megabytes MB"
  if [ "$megabytes" -gt "$1" ]; then echo "$2: expected at most $1 MB, found $megabytes MB" >&2 && exit 1; fi
}
[ "$platform" != linux-x64 ] || at_most 25 "to download" "${tarballs[@]}"
typescript=$(npm pkg get devDependencies.typescript | tr -d '"')
types=$(npm pkg get "devDependencies.@types/node" | tr -d '"')
ai=$(npm pkg get devDependencies.ai | tr -d '"')
zod=$(npm pkg get dependencies.zod | tr -d '"')
root=$PWD

install_with() { # VERSION of npm
  local project="$scratch/npm-$1"
  rm -rf "$project" && mkdir "$project" && cd "$project"
  echo '{ "type": "module", "private": true }' >package.json
  # A script that runs would be an error here: it could not find a shell.
  npx --yes "npm@$1" install --script-shell=/no/such/shell "${tarballs[@]}" 2>&1 | tee install.log
  if grep -q "install-scripts" install.log; then echo "npm $1 asks about install scripts" >&2 && exit 1; fi
  npx pawl --version
}
(install_with 10) &
ten=$!
(install_with 11)
wait "$ten"
cd "$scratch/npm-11"
[ "$platform" != linux-x64 ] || at_most 70 "installed" node_modules
npm install --silent "typescript@$typescript" "@types/node@$types" "ai@$ai" "zod@$zod"

cat >program.ts <<'TS'
import { expertPolicy, openEnvironment, promptStyle, rollout } from "pawl";

const environment = openEnvironment({ name: "household" });
const groups = await rollout({
  environment,
  policy: expertPolicy(environment.expert!),
  style: promptStyle(environment.prompt),
  tasks: environment.tasks("valid_unseen").slice(0, 2),
  groupSize: 1,
  seed: 1,
});
const success: readonly boolean[] = groups.flatMap(({ episodes }) =>
  episodes.map(({ success }) => success),
);
console.log(success.join(" "));
TS
npx tsc --strict --types node --target ES2023 --lib ES2023,DOM --module NodeNext --moduleResolution NodeNext program.ts
test "$(node program.js)" = "true true"
test -f node_modules/pawl/docs/reference/commands.md
node "$root/packaging/tutorials.js" .
echo "the package works"

# The core alone: no native library, and a rollout with its own world.
mkdir "$scratch/core" && cd "$scratch/core"
echo '{ "type": "module", "private": true }' >package.json
npm install --silent --script-shell=/no/such/shell "$scratch"/pawl-core-*.tgz
if find node_modules -name "*.node" | grep -q .; then echo "@pawl/core brings a native library" >&2 && exit 1; fi
at_most 20 "@pawl/core installed" node_modules
cat >program.js <<'JS'
import { computeAdvantages, expertPolicy, household, promptStyle, rollout } from "@pawl/core";

const environment = household.open(household.options.parse({}));
const groups = await rollout({
  environment,
  policy: expertPolicy(environment.expert),
  style: promptStyle(environment.prompt),
  tasks: environment.tasks("valid_unseen").slice(0, 2),
  groupSize: 2,
  seed: 1,
});
const { advantages } = computeAdvantages(groups, { name: "grpo" });
console.log(groups.every(({ episodes }) => episodes.every(({ success }) => success)), advantages.length);
JS
test "$(node program.js)" = "true 2"
echo "the core works alone"
