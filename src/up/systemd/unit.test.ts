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
