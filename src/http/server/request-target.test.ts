import t from "tap";
import { parseTarget } from "./request-target.ts";

t.test("parseTarget() splits path and query and leaves both encoded", async (t) => {
  t.strictSame(parseTarget("/a%2Fb/c?d=e?f"), { path: "/a%2Fb/c", query: "d=e?f" });
  t.strictSame(parseTarget("/"), { path: "/", query: "" });
  t.strictSame(parseTarget("http://host:80/a?b"), { path: "/a", query: "b" });
  t.strictSame(parseTarget("HTTPS://host"), { path: "/", query: "" });
});

t.test("parseTarget() refuses malformed targets", async (t) => {
  const bad = [
    undefined,
    "",
    "*",
    "a/b",
    "host:443",
    "/a b",
    "/a\tb",
    "/\u0000",
    "/a%",
    "/a%2",
    "/a%zz",
    "/ä",
    "/a#b",
    "/a?b c",
    "/a\r\nX: y",
  ];
  for (const target of bad) t.equal(parseTarget(target), undefined, JSON.stringify(target));
});
