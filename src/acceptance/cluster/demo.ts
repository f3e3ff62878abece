/**
 * Run by `make demo`: starts a temporary cluster, applies the examples with kubectl, shows them and removes everything.
 * Exits with 0 when all steps succeeded. `SVC_PROGRAM` may be sources, bundle (default) or binary.
 */

import { kubectlPaths } from "../../testing/apiserver/kubectl-paths.ts";
import { until } from "../../testing/std/until.ts";
import { command, findMissingRequirement, programs, TestCluster } from "./cluster.ts";

const missing = findMissingRequirement();
if (missing === undefined) process.exitCode = await demo();
else {
  console.error(`Cannot run the demo: ${missing}.`);
  process.exitCode = 1;
}

async function demo(): Promise<number> {
  const selected = process.env.SVC_PROGRAM ?? "bundle";
  if (!Object.hasOwn(programs, selected)) {
    console.error(`Unknown SVC_PROGRAM ${JSON.stringify(selected)}; allowed: ${Object.keys(programs).join(", ")}`);
    return 2;
  }
  const failures: string[] = [];
  const cluster = await TestCluster.create({ program: programs[selected as keyof typeof programs] });
  try {
    const readyMs = await cluster.start("--stop-pods");
    console.log(`svc up was ready after ${Math.round(readyMs)} ms (${selected}); kubectl is ${kubectlPaths()[0]}\n`);
    await show(cluster, failures);
    console.log("\nStopping svc up and its pods");
    const code = await cluster.stop("SIGINT");
    if (code !== 0) failures.push(`svc up ended with ${code}`);
    const remains = await cluster.remains();
    for (const line of remains) failures.push(`left behind: ${line}`);
  } catch (error) {
    failures.push(error instanceof Error ? error.message : String(error));
    console.error(cluster.log());
  } finally {
    await cluster[Symbol.asyncDispose]();
  }
  console.log(failures.length === 0 ? "\nThe demo succeeded; nothing is left of it." : "\nThe demo failed:");
  for (const failure of failures) console.log(`  ${failure}`);
  return failures.length === 0 ? 0 : 1;
}

async function show(cluster: TestCluster, failures: string[]): Promise<void> {
  const run = async (...args: readonly string[]): Promise<string> => {
    console.log(`$ kubectl ${args.join(" ")}`);
    const { code, stdout, stderr } = await cluster.kubectl(args);
    console.log(`${stdout}${stderr}`);
    if (code !== 0) failures.push(`kubectl ${args.join(" ")} ended with ${code}`);
    return stdout;
  };
  const { stdout } = await command("find", ["testdata/examples", "-name", "*.yaml"]);
  const files = stdout.trim().split("\n").sort();
  for (const file of files) await run("apply", "-f", file);
  await until("all pods to run", async () => {
    const phases = (await cluster.kubectl(["get", "pods", "-o", "jsonpath={.items[*].status.phase}"])).stdout.split(
      " ",
    );
    return phases.length >= files.length && phases.every((phase) => phase === "Running") ? phases : undefined;
  });
  await run("get", "pods", "-o", "wide");
  await run("get", "nodes");
  await run("get", "events");
  const log = await until("a line in the log", async () => {
    const { stdout: text } = await cluster.kubectl(["logs", "hello"]);
    return text === "" ? undefined : text;
  });
  if (!log.includes("hello 1 from")) failures.push("the log of pod hello has no greeting");
  await run("logs", "hello");
  await run("logs", "settings");
  for (const file of files) await run("delete", "-f", file);
  const left = await run("get", "pods");
  if (left.trim() !== "") failures.push("pods are left after they were deleted");
}
