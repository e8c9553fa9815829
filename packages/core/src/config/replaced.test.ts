import { expect, it } from "vitest";
import { hintFor } from "./replaced.js";

it("says what a removed or renamed setting is called now, as a flag or in a file", () => {
  expect(hintFor("--paw.balance", [])).toBe(" It is now called paw.lambda.");
  expect(hintFor("invalid.patience", [])).toBe(" It is now called invalidActionLimit.");
  expect(hintFor("--gradient-sample", [])).toMatch(/gradients\.every/);
  expect(hintFor("--engine.name", ["--env.name"])).toMatch(/engine\.address/);
  expect(hintFor("--paw.counterfactual", [])).toMatch(/removed: .*results\/knowledge/);
  expect(hintFor("--choose.critic", ["--critic.weights"])).toMatch(/removed: .*results\/knowledge/);
});

it("otherwise names the nearest, and knows no setting by the names that every object has", () => {
  expect(hintFor("--env.nam", ["--env.name"])).toContain("--env.name");
  expect(hintFor("constructor", [])).toBe("");
});

it("suggests flags by their last part and by what people call them elsewhere", () => {
  const known = ["--optimizer.learning-rate", "--model.start", "--groups", "--group-size", "--env"];
  expect(hintFor("--learning-rate", known)).toBe(' Did you mean "--optimizer.learning-rate"?');
  expect(hintFor("--lr", known)).toBe(' Did you mean "--optimizer.learning-rate"?');
  expect(hintFor("--model", known)).toBe(' Did you mean "--model.start"?');
  expect(hintFor("--batch-size", known)).toBe(' Did you mean "--groups" or "--group-size"?');
  expect(hintFor("--train.env", known)).toBe(' Did you mean "--env"?');
  expect(hintFor("--grups", known)).toBe(' Did you mean "--groups"?');
});

it("prefers what is called exactly so, and what is learnt to what is measured", () => {
  const known = [
    ...["--alarms.groups", "--critic.learning-rate", "--groups", "--group-size"],
    ...["--optimizer.learning-rate", "--minibatch"],
  ];
  expect(hintFor("--batch-size", known)).toBe(
    ' Did you mean "--groups", "--group-size", "--minibatch"?',
  );
  expect(hintFor("--lr", known)).toBe(
    ' Did you mean "--optimizer.learning-rate" or "--critic.learning-rate"?',
  );
});

it("sees through a slip in a last part or in another name, and names nothing far away", () => {
  const known = ["--model.start", "--optimizer.learning-rate"];
  expect(hintFor("--modle", known)).toBe(' Did you mean "--model.start"?');
  expect(hintFor("--lerning-rate", known)).toBe(' Did you mean "--optimizer.learning-rate"?');
  expect(hintFor("--zzzzzzzz", known)).toBe("");
});
