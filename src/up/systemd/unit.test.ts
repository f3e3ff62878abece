import t from "tap";
import { systemdUnit } from "./unit.ts";

t.test("systemdUnit() quotes special characters of systemd", async (t) => {
  const unit = systemdUnit({ command: ["/opt/my svc/svc", "up", "--data-dir=/srv/100%", "--x=$HOME", 'say "hi"'] });
  t.match(unit, 'ExecStart="/opt/my svc/svc" up --data-dir=/srv/100%% --x=$$HOME "say \\"hi\\""');
});

t.test("systemdUnit() keeps pods when the service stops, and has readiness notification", async (t) => {
  const unit = systemdUnit({ command: ["/usr/bin/svc", "up"] });
  for (const line of ["Type=notify", "NotifyAccess=all", "Delegate=yes", "KillMode=process", "Restart=always"]) {
    t.ok(unit.split("\n").includes(line), line);
  }
});

t.test("systemdUnit() describes what a stop does to the pods, as the flags have it", async (t) => {
  const survive = /\n# Pods .* survive a restart of the service\.\nKillMode=process\n/;
  const stop = /\n# --stop-pods: pods stop with the service/;
  for (const flags of [[], ["--stop-pods=false"]]) {
    t.match(systemdUnit({ command: ["/usr/bin/svc", "up", ...flags] }), survive);
    t.notMatch(systemdUnit({ command: ["/usr/bin/svc", "up", ...flags] }), stop);
  }
  for (const flag of ["--stop-pods", "--stop-pods=true"]) {
    t.match(systemdUnit({ command: ["/usr/bin/svc", "up", flag] }), stop);
    t.notMatch(systemdUnit({ command: ["/usr/bin/svc", "up", flag] }), survive);
  }
});
