import t from "tap";
import { parseTokenFile } from "./token-file.ts";

t.test("parseTokenFile() reads users with and without groups", async (t) => {
  const text = 'abc,alice,1\n\r\n"d""ef" , bob , 2 , "dev, ops,"\r\nxyz,carol,,one,ignored\n';
  t.strictSame(parseTokenFile("tokens.csv", text), [
    { token: "abc", user: { name: "alice", uid: "1", groups: [], extra: {} } },
    { token: 'd"ef', user: { name: "bob", uid: "2", groups: ["dev", "ops"], extra: {} } },
    { token: "xyz", user: { name: "carol", uid: "", groups: ["one"], extra: {} } },
  ]);
  t.strictSame(parseTokenFile("tokens.csv", ""), []);
});

t.test("parseTokenFile() rejects an invalid file with its name and line", async (t) => {
  const bad: readonly (readonly [string, RegExp])[] = [
    ["a,b", /tokens.csv:1: expected token,user,uid/],
    ["\n,b,c", /tokens.csv:2: the token is empty/],
    ["a,,c", /tokens.csv:1: the user is empty/],
    ["a,b,c\na,d,e", /tokens.csv:2: duplicate of the token in line 1/],
    ['a,b,"c', /tokens.csv:1: a quote/],
    ['a,b"x",c', /tokens.csv:1: a quote/],
  ];
  for (const [text, message] of bad) t.throws(() => parseTokenFile("tokens.csv", text), { message }, text);
  t.throws(() => parseTokenFile("f", "secret,b"), { message: /^(?!.*secret)/ }, "no secret in the message");
});
