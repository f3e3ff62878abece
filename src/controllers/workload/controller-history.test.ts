import t from "tap";
import { setPodTemplateDefaults } from "../../api/core/pod-template/defaults.ts";
import { type PodTemplateSpec, podTemplateSpec } from "../../api/core/pod-template/schema.ts";
import { applyDefaults } from "../../schema/defaults.ts";
import {
  compareRevisions,
  hashTemplate,
  matchesTemplate,
  revisionData,
  revisionName,
  templateOf,
} from "./controller-history.ts";

const template = (image: string): PodTemplateSpec =>
  setPodTemplateDefaults(
    applyDefaults(podTemplateSpec, {
      metadata: { labels: { app: "db" } },
      spec: { containers: [{ name: "c", image }] },
    }),
  );

t.test("hashTemplate() returns the hashes that Kubernetes 1.33 gave these templates", async (t) => {
  t.equal(hashTemplate(template("img:1"), 0), "dc57b7c58");
  t.equal(hashTemplate(template("img:2"), 0), "54db48ddc5");
  t.not(hashTemplate(template("img:1"), 1), "dc57b7c58");
});

t.test("revisionData() is a patch that replaces the template, in alphabetical order", async (t) => {
  const data = JSON.stringify(revisionData(template("img:1")));
  t.match(data, /^\{"spec":\{"template":\{"\$patch":"replace","metadata":\{"creationTimestamp":null,"labels":/);
  t.match(data, /"containers":\[\{"image":"img:1","imagePullPolicy":"IfNotPresent","name":"c","resources":\{\},/);
});

t.test("matchesTemplate() and templateOf() invert revisionData()", async (t) => {
  const revision = { metadata: { name: "a" }, data: revisionData(template("img:1")), revision: 1 };
  t.ok(matchesTemplate(revision, template("img:1")));
  t.notOk(matchesTemplate(revision, template("img:2")));
  t.ok(matchesTemplate({ ...revision, data: revisionData(templateOf(revision)) }, template("img:1")));
});

t.test("matchesTemplate() ignores the order of members", async (t) => {
  const { spec } = revisionData(template("img:1")) as { readonly spec: { readonly template: object } };
  const shuffled = Object.fromEntries(Object.entries(spec.template).reverse());
  t.ok(matchesTemplate({ data: { spec: { template: shuffled } }, revision: 1 }, template("img:1")));
});

t.test("revisionName() shortens the name of the owner", async (t) => {
  t.equal(revisionName("db", "abc"), "db-abc");
  t.equal(revisionName("x".repeat(253), "abc").length, 227);
});

t.test("compareRevisions() sorts by revision, then by creation and name", async (t) => {
  const revision = (name: string, number: number, creationTimestamp: string) => ({
    metadata: { name, creationTimestamp },
    revision: number,
  });
  const sorted = [
    revision("d", 10, "2026-01-01T00:00:00Z"),
    revision("c", 2, "2026-01-02T00:00:00Z"),
    revision("b", 2, "2026-01-01T00:00:00Z"),
    revision("a", 2, "2026-01-01T00:00:00Z"),
  ].sort(compareRevisions);
  t.same(
    sorted.map(({ metadata }) => metadata.name),
    ["a", "b", "c", "d"],
  );
});
