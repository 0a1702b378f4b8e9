// bench/gateway/from-inside-section.mjs: the report section about connections from inside sandboxes.
import { ratio } from '../stats.mjs';
import { cpuEach, cpuPerGb, megabytes, of, p50, p99, perSecond, times } from './figures.mjs';

const LABELS = {
  direct: 'no sandbox',
  ags: '**`ags exec`**',
  srt: '`srt`',
  gateway: '**`ags gateway`**, no sandbox',
  proxy: 'the proxy of srt, no sandbox',
};
/** Peers by the variant of ours to compare them with. */
const OURS = { srt: 'ags', proxy: 'gateway' };

export function fromInsideSection({ found, rounds, seconds, peers }) {
  const { tunnels, single, down, up } = found;
  return {
    title: 'from inside a sandbox',
    text: text({
      rounds,
      seconds,
      log: found.log,
      srt: tunnels.srt === undefined ? `not measured: ${peers.why}` : `@anthropic-ai/sandbox-runtime ${peers.version}`,
    }),
    tables: [
      connections('Connections, sixteen at a time', tunnels),
      connections('Connections, one at a time', single),
      bytes('Download', down),
      bytes('Upload', up),
    ],
    bars:
      tunnels.srt === undefined
        ? []
        : [
            {
              name: 'connections a second from inside a sandbox, over srt',
              value: ratio(perSecond(tunnels.ags), perSecond(tunnels.srt)),
              atLeast: 1.8,
            },
            {
              name: 'connections a second through the proxy alone, over that of srt',
              value: ratio(perSecond(tunnels.gateway), perSecond(tunnels.proxy)),
              atLeast: 1.8,
            },
          ],
  };
}

const text = ({ rounds, seconds, log, srt }) =>
  `The complete path of a connection from a sandboxed program. \`ags exec -- …\` and \`srt --settings … …\` (${srt}) start once each, as the same ordinary user in the same directory, and stay up. A small C client runs inside and uses the proxy that \`http_proxy\` names there, with its user and password if there are any. Both have the same 52 entries, name and port, on their list, and find the names in /etc/hosts. ags is used without its built-in list of hosts, and may open 100 000 connections in a second instead of 200; srt may write to the directory; everything else has its default. ags writes its decision log: ${log.lines} lines for ${log.fewest} finished connections and at most ${log.most - log.fewest} unfinished ones when a measurement ended.

The origin is in its own network namespace behind a veth pair, at 203.0.113.10. Each new connection asks for the origin by name with CONNECT, sends one request, gets one answer and is closed. Download and upload are one connection each, at full speed. Processor time is that of every process of the sandbox, inside and outside, including those that have ended, without the client: for ags the runner with its gateway, and bwrap; for srt its Node process with the proxy, its socat processes on both sides, and bwrap. ${rounds} rounds of ${seconds} s each. "No sandbox" is the same client outside, straight to the address of the origin; the last two rows are the same client outside, through \`ags gateway\` with its decision log and through the proxy that srt opens when a program uses it as a library, with its address guard and its password.`;

function connections(caption, runs) {
  return {
    caption,
    head: [
      'from',
      'a second',
      'half within',
      '99 of 100 within',
      'processor time of each',
      'ags opens',
      'ags, half',
      'ags needs',
    ],
    rows: Object.keys(runs).map((name) => [
      LABELS[name],
      of(perSecond(runs[name])),
      of(p50(runs[name]), 'µs'),
      of(p99(runs[name]), 'µs'),
      name === 'direct' ? '' : of(cpuEach(runs[name]), 'µs'),
      ...compared(runs, name, [perSecond, p50, cpuEach]),
    ]),
  };
}

function bytes(caption, runs) {
  return {
    caption,
    head: ['from', 'rate', 'processor time of a GB', 'ags moves', 'ags needs'],
    rows: Object.keys(runs).map((name) => [
      LABELS[name],
      of(megabytes(runs[name]), 'MB/s'),
      name === 'direct' ? '' : of(cpuPerGb(runs[name]), 's'),
      ...compared(runs, name, [megabytes, cpuPerGb]),
    ]),
  };
}

const compared = (runs, name, figures) =>
  figures.map((figure) => (name in OURS ? times(figure(runs[OURS[name]]), figure(runs[name])) : ''));
