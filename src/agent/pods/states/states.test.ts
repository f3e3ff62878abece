import { globSync, readFileSync } from "node:fs";
import t from "tap";
import { podStates } from "./states.ts";

t.test("states declare the transitions that the diagram in docs/ shows", async (t) => {
  const pages = globSync(new URL("../../../../docs/*.md", import.meta.url).pathname).map((page) =>
    readFileSync(page, "utf8"),
  );
  const diagram = /```mermaid\nstateDiagram-v2\n([^`]*)```/.exec(pages.join("\n"))?.[1] ?? "";
  const drawn = [...diagram.matchAll(/^ *(\S+) --> ([^\s:]+)/gm)].map(([, from, to]) => `${from} --> ${to}`);
  const declared = Object.values(podStates).flatMap(({ name, successors }) =>
    // The diagram leaves out repetitions of the same state.
    successors.filter((to) => to !== name).map((to) => `${name} --> ${to === "gone" ? "[*]" : to}`),
  );
  t.same(declared.concat("[*] --> admitting").sort(), drawn.sort());
});

t.test("states lists each state under its own name", async (t) => {
  for (const [key, { name }] of Object.entries(podStates)) t.equal(name, key);
});
