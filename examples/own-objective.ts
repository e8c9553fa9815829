/** Objectives: your own loss, written once, evaluated, differentiated, and sent as JSON. */
import { derivative, evaluateExpression, expression, type Objective, parseObjective } from "pawl";

const { clamp, exp, input, logprob, mul, neg, sub } = expression;

// REINFORCE with a bounded importance ratio: −A · clamp(p / p_old, 0, 2), weighted by the caller.
const ratio = exp(sub(logprob, input("oldLogprob")));
const loss = mul(input("weight"), neg(mul(input("advantage"), clamp(ratio, 0, 2))));
const objective: Objective = { loss, metrics: { ratio } };

const token = { oldLogprob: -1, advantage: 0.5, weight: 1 };
const slope = derivative(loss, "logprob");
for (const logprobNow of [-1.2, -1, -0.1]) {
  const quantities = { logprob: logprobNow, value: 0, entropy: 0 };
  const value = evaluateExpression(loss, quantities, token);
  console.log(
    logprobNow,
    value.toFixed(4),
    evaluateExpression(slope, quantities, token).toFixed(4),
  );
}
console.log(
  "survives JSON:",
  parseObjective(JSON.parse(JSON.stringify(objective))).loss.op === loss.op,
);
