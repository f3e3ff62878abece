import t from "tap";
import { reportText } from "./report.ts";

t.test("reportText() shows where the cluster is and how to use it", async (t) => {
  const text = reportText({
    server: "https://192.0.2.1:6443",
    nodeName: "n1",
    nodeIps: ["192.0.2.1"],
    runtime: "containerd",
    dataDir: "/var/lib/svc",
    svcconfig: "/var/lib/svc/admin.svcconfig",
    controllers: [],
    stopPods: false,
    startedInMs: 1234,
  });
  t.match(text, "svc is up after 1.2 s.");
  t.match(text, "  Node         n1, 192.0.2.1\n");
  t.match(text, "  Controllers  none\n");
  t.match(text, "export KUBECONFIG=/var/lib/svc/admin.svcconfig");
  t.match(text, "pods keep running (--stop-pods stops them too)");
});
