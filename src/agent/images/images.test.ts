import t from "tap";
import { parseImageReference } from "../../api/core/pod-spec/image-reference.ts";
import { parseDockerConfig, parsePullSecret } from "./docker-config.ts";
import { findImagePatternProblem, matchesImage } from "./image-pattern.ts";
import { Keyring } from "./keyring.ts";

t.test("parseImageReference() returns the registry, and adds the default tag", async (t) => {
  const cases = [
    ["busybox", "docker.io", "library/busybox", "busybox:latest"],
    ["busybox:1", "docker.io", "library/busybox", "busybox:1"],
    ["me/app", "docker.io", "me/app", "me/app:latest"],
    ["localhost/bb:1", "localhost", "bb", "localhost/bb:1"],
    ["localhost:5000/a/b", "localhost:5000", "a/b", "localhost:5000/a/b:latest"],
    [`r.example.org/x@sha256:${"a".repeat(64)}`, "r.example.org", "x", `r.example.org/x@sha256:${"a".repeat(64)}`],
  ] as const;
  for (const [text, registry, repository, withTag] of cases) {
    t.match(parseImageReference(text), { registry, repository, withTag }, text);
  }
});

t.test("parseImageReference() returns Kubernetes' error for an invalid reference", async (t) => {
  const format = "invalid reference format";
  const lower = (name: string) => `${format}: repository name (${name}) must be lowercase`;
  const cases: readonly (readonly [string, string])[] = [
    ["a b", format],
    ["x@sha256:123", format],
    ["x:", format],
    ["/x", format],
    ["x/", format],
    ["x:tag:tag", format],
    ["r.io/x:-1", format],
    [`x:${"t".repeat(129)}`, format],
    ["UPPER", lower("library/UPPER")],
    ["me/UPPER:1", lower("me/UPPER")],
    ["127.0.0.1:1/UPPER:1", lower("UPPER")],
    ["r.io/x/Y@sha256:123", lower("x/Y@sha256")],
    ["a".repeat(64), `invalid repository name (${"a".repeat(64)}), cannot specify 64-byte hexadecimal strings`],
    [`r.io/${"x".repeat(256)}`, "repository name must not be more than 255 characters"],
    [`x@sha256:${"a".repeat(63)}`, "invalid checksum digest length"],
    [`x@sha256:${"A".repeat(64)}`, "invalid checksum digest format"],
    [`x@md5:${"a".repeat(32)}`, "unsupported digest algorithm"],
  ];
  for (const [text, error] of cases) t.same(parseImageReference(text), { error }, text);
});

t.test("matchesImage() compares the labels of the host, the port, and the prefix of the path", async (t) => {
  const cases: readonly [string, string, boolean][] = [
    ["r.io", "r.io/a/b", true],
    ["r.io/a", "r.io/a/b", true],
    ["r.io/a", "r.io/ab", true],
    ["r.io/a/b", "r.io/a", false],
    ["*.r.io", "x.r.io/a", true],
    ["*.r.io", "r.io/a", false],
    ["*.r.io", "x.y.r.io/a", false],
    ["app*.r.io", "app1.r.io/a", true],
    ["*.*.r.io", "x.y.r.io", true],
    ["r.io:5000", "r.io:5000/a", true],
    ["r.io:5000", "r.io/a", false],
    ["r.io", "r.io:5000/a", false],
    ["*", "localhost/a", true],
    ["r[0-9].io", "r7.io/a", true],
    [`${"*a".repeat(30)}b`, `${"a".repeat(2000)}/x`, false],
  ];
  for (const [pattern, image, expected] of cases)
    t.equal(matchesImage(pattern, image), expected, `${pattern} ${image}`);
});

t.test("findImagePatternProblem() describes an invalid pattern", async (t) => {
  for (const good of ["r.io", "*.r.io/x", "r.io:5000/a", "[::1]:5000/a"])
    t.equal(findImagePatternProblem(good), undefined);
  t.match(findImagePatternProblem("https://r.io"), /without a scheme/);
  t.match(findImagePatternProblem(""), /no host/);
  t.match(findImagePatternProblem("a b"), /invalid character " "/);
  t.match(findImagePatternProblem("r.io:http/x"), /invalid port ":http"/);
  t.match(findImagePatternProblem("r[.io"), /not closed/);
});

t.test("Keyring.lookup() prefers the more specific entry, and finds Docker Hub by its legacy name", async (t) => {
  const auth = Buffer.from("u:p:w").toString("base64");
  const auths = {
    "r.example.org": { auth, username: "ignored" },
    "https://r.example.org/v2/team": { username: "t", password: "q" },
    "*.test": { auth },
  };
  const keyring = new Keyring();
  keyring.add(parsePullSecret({ ".dockerconfigjson": JSON.stringify({ auths }) }), { kind: "node" });
  const find = (repository: string) => keyring.lookup(repository).map((each) => each.auth);
  t.same(find("r.example.org/team/x"), [
    { username: "t", password: "q" },
    { username: "u", password: "p:w" },
  ]);
  t.same(find("r.example.org/other/x"), [{ username: "u", password: "p:w" }]);
  t.equal(find("a.test/x").length, 1);
  t.equal(find("a.b.test/x").length, 0);
  t.equal(find("docker.io/library/busybox").length, 0);
  const legacy = { "https://index.docker.io/v1/": { auth } };
  keyring.add(parsePullSecret({ ".dockercfg": JSON.stringify(legacy) }), { kind: "node" });
  t.equal(find("docker.io/library/busybox").length, 1);
  t.equal(find("quay.test/x").length, 1);
});

t.test("parsePullSecret() does not quote an invalid value", async (t) => {
  t.throws(() => parsePullSecret({ ".dockerconfigjson": "[]" }), /not a JSON object/);
  const auths = { "r.io": { auth: Buffer.from("secret").toString("base64") } };
  t.throws(() => parseDockerConfig(JSON.stringify({ auths })), /^unable to parse auth field.*username:password\)$/);
  t.same(parsePullSecret({}), new Map());
  t.same(parseDockerConfig('{"credHelpers":{}}'), new Map());
});
