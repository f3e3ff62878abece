import t from "tap";
import { parseClusterInfo } from "./cluster-info.ts";

t.test("parseClusterInfo() reads the server and the CA of the first cluster", async (t) => {
  const data = Buffer.from("PEM").toString("base64");
  const file = `clusters: [{name: "", cluster: {server: "https://a", certificate-authority-data: ${data}}}]`;
  t.same(parseClusterInfo(file), { server: "https://a", ca: "PEM" });
});

t.test("parseClusterInfo() is empty for a file of another structure", async (t) => {
  for (const file of ["", "[]", "clusters: 1", "clusters: []", "clusters: [{cluster: {server: 5}}]"]) {
    t.same(parseClusterInfo(file), { server: undefined, ca: undefined }, file);
  }
});
