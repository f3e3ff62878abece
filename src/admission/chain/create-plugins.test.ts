import { join } from "node:path";
import t from "tap";
import { pluginDeps } from "../../testing/admission/admission-fixture.ts";
import { plugins } from "../plugins/built-in-plugins.ts";
import { createPlugins } from "./create-plugins.ts";
import type { PluginRow } from "./factory.ts";

const row = (name: string, observe: (value: unknown) => void = () => {}): PluginRow => ({
  name,
  enabledByDefault: true,
  create: ({ configuration }) => {
    observe(configuration);
    return { name, handles: () => true };
  },
});
const rows: readonly PluginRow[] = [
  row("Usual"),
  { ...row("Unusual"), enabledByDefault: false },
  { name: "Unbuilt", enabledByDefault: true },
  { name: "UnbuiltToo", enabledByDefault: false },
  { name: "Gated", enabledByDefault: true, featureGate: "Off" },
];
const none = { enabled: [], disabled: [], controlFile: undefined };
const deps = pluginDeps([], { isFeatureEnabled: () => false });

t.test(
  "createPlugins() applies the enabled and disabled names to the defaults, in the order of the table",
  async (t) => {
    const names = async (settings: Partial<typeof none>): Promise<string> => {
      const { plugins, missing } = await createPlugins({ ...none, ...settings }, deps, rows);
      return `${plugins.map(({ name }) => name).join()} without ${missing.join()}`;
    };
    t.equal(await names({}), "Usual without Unbuilt");
    t.equal(await names({ enabled: ["Unusual"] as never }), "Usual,Unusual without Unbuilt");
    t.equal(await names({ disabled: ["Usual", "Unbuilt"] as never }), " without ");
    await t.rejects(names({ enabled: ["UnbuiltToo"] as never }), {
      message: "Cannot use --enable-admission-plugins=UnbuiltToo: this build does not have it",
    });
  },
);

t.test("builtInPlugins lists the 36 plugins of Kubernetes", (t) => {
  t.equal(new Set(plugins.map(({ name }) => name)).size, 36);
  t.end();
});

const identity = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";

t.test("createPlugins() passes each plugin its configuration, inline or from another file", async (t) => {
  const files = t.testdir({
    "all.yaml": `${identity}plugins:
- name: Usual
  configuration:
    kind: Config
    limits:
    - qps: 3
- name: Other
  path: other.yaml
- name: Silent
`,
    "other.yaml": "kind: Other\nsize: 2\n",
  });
  const seen: Record<string, { readonly value: unknown; locationOf(path: string): string } | undefined> = {};
  const createRecordingRow = (name: string): PluginRow =>
    row(name, (configuration) => Object.assign(seen, { [name]: configuration }));
  const controlFile = join(files, "all.yaml");
  await createPlugins({ ...none, controlFile }, deps, [
    createRecordingRow("Usual"),
    createRecordingRow("Other"),
    createRecordingRow("Silent"),
  ]);
  t.same(seen.Usual?.value, { kind: "Config", limits: [{ qps: 3 }] });
  t.equal(seen.Usual?.locationOf("limits[0].qps"), `${controlFile}:8`);
  t.same(seen.Other?.value, { kind: "Other", size: 2 });
  t.equal(seen.Other?.locationOf("size"), `${join(files, "other.yaml")}:2`);
  t.equal(seen.Silent, undefined);
});

t.test("createPlugins() rejects an invalid configuration file with its line", async (t) => {
  const table = [
    ["", /the file is empty$/],
    ["- 1\n", /it is not an object$/],
    [`${identity}---\n${identity}`, /it has 2 documents: one is expected$/],
    ["a: [\n", /^Cannot use .*file\.yaml: /],
    ["apiVersion: v1\nkind: Pod\n", /file\.yaml:2: expected apiVersion: apiserver\.config\.k8s\.io\/v1 and kind/],
    [`${identity}plugin: []\n`, /file\.yaml:3: unknown field plugin$/],
    [`${identity}kind: AdmissionConfiguration\n`, /file\.yaml:\d: field kind is set twice$/],
    [`${identity}plugins: 3\n`, /file\.yaml:3: field plugins: /],
    [`${identity}plugins:\n- name: Usuall\n`, /file\.yaml:4: .* plugin "Usuall" is unknown: did you mean Usual\?$/],
    [`${identity}plugins:\n- path: a\n`, /file\.yaml:4: plugins\[0\]\.name: it is missing$/],
    [`${identity}plugins:\n- name: Usual\n- name: Usual\n`, /plugins\[1\]\.name: Usual is listed twice$/],
    [`${identity}plugins:\n- name: Usual\n  path: nowhere.yaml\n`, /nowhere\.yaml: ENOENT/],
  ] as const;
  for (const [text, why] of table) {
    const controlFile = join(t.testdir({ "file.yaml": text }), "file.yaml");
    const attempt = createPlugins({ ...none, controlFile }, deps, rows);
    await t.rejects(attempt, { message: why }, JSON.stringify(text));
  }
  t.match(await createPlugins({ ...none, controlFile: join(t.testdir({ f: identity }), "f") }, deps, rows), {
    plugins: [{ name: "Usual" }],
  });
});
