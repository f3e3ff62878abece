import t from "tap";
import { outdatedAliases } from "./label-aliases.ts";

const node = (labels: Readonly<Record<string, string>>) => ({ metadata: { name: "a", labels } });

t.test("outdatedAliases() gives former names the values of today's names", (t) => {
  const current = { "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" };
  const aliases = { "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64" };
  t.same(outdatedAliases(node(current)), aliases, "they are absent");
  const wrong = { ...current, ...aliases, "beta.kubernetes.io/arch": "arm64" };
  t.same(outdatedAliases(node(wrong)), { "beta.kubernetes.io/arch": "amd64" }, "one differs");
  t.equal(outdatedAliases(node({ ...current, ...aliases })), undefined);
  t.equal(outdatedAliases(node({ "beta.kubernetes.io/os": "linux" })), undefined, "without today's name");
  t.equal(outdatedAliases({ metadata: { name: "a" } }), undefined);
  t.end();
});
