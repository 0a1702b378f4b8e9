// bench/gateway/sections.mjs: the report sections about the gateway.
import { difference, MEASURES, ms, ratio, spread, summary, wall } from '../stats.mjs';
import { cpuEach, cpuPerGb, megabytes, of, p50, p99, perSecond, times } from './figures.mjs';

const LABELS = {
  direct: 'no proxy',
  ags: '**ags**',
  'ags unix': '**ags**, by a unix socket',
  tinyproxy: 'tinyproxy',
  quiet: 'tinyproxy, without its log',
  squid: 'squid',
  srt: 'srt',
};
const PEERS = ['tinyproxy', 'quiet', 'squid', 'srt'];
/** Prefixes of section titles and bar names: a run of the gateway alone replaces only those. */
export const GATEWAY = { title: 'The gateway: ', bar: 'the gateway: ' };

export function gatewaySections(found) {
  const fromInside = found.fromInside === null ? [] : [found.fromInside];
  return [tunnels(found), ...fromInside, bytes(found), events(found), memory(found), checks(found)].map(asGateway);
}

export const asGateway = (section) => ({
  ...section,
  title: `${GATEWAY.title}${section.title}`,
  bars: section.bars.map((bar) => ({ ...bar, name: `${GATEWAY.bar}${bar.name}` })),
});

/** A bar against a peer, if the peer was measured. */
const over = (runs, peer, get, bar) =>
  runs[peer] === undefined ? [] : [{ ...bar, value: ratio(get(runs.ags), get(runs[peer])) }];

function tunnels(found) {
  const { tunnels: many, single, parts } = found;
  return {
    title: 'opening connections',
    text: tunnelsText(found),
    tables: [
      {
        head: ['through', 'a second', 'processor time of each', 'ags opens', 'ags needs'],
        caption: 'Sixteen at a time',
        rows: Object.keys(many).map((name) => [
          LABELS[name],
          of(perSecond(many[name])),
          name === 'direct' ? '' : of(cpuEach(many[name]), 'µs'),
          ...(PEERS.includes(name)
            ? [times(perSecond(many.ags), perSecond(many[name])), times(cpuEach(many.ags), cpuEach(many[name]))]
            : ['', '']),
        ]),
      },
      latencies('One at a time, the answer in one piece', single),
      latencies('One at a time, the answer in two: its head, and then its body', parts),
    ],
    bars: [
      ...over(many, 'tinyproxy', perSecond, {
        name: `connections a second, over tinyproxy (${found.busy ? 'other programs at work' : 'quiet machine'})`,
        atLeast: found.busy ? 3 : 2.5,
      }),
      ...over(many, 'tinyproxy', cpuEach, { name: 'processor time of a connection, over tinyproxy', atMost: 0.7 }),
      ...over(many, 'quiet', cpuEach, {
        name: 'processor time of a connection, over tinyproxy without its log',
        atMost: 1.8,
      }),
      ...over(parts, 'tinyproxy', p99, {
        name: 'one at a time, the answer in two pieces, 99 of 100 within, over tinyproxy',
        atMost: 0.2,
      }),
    ],
    chart: {
      title: 'Connections opened in a second, each with one request',
      unit: '',
      bars: Object.keys(many)
        .filter((name) => name !== 'direct')
        .map((name) => ({
          label: LABELS[name].replaceAll('*', ''),
          values: perSecond(many[name]),
          ours: name.startsWith('ags'),
        })),
    },
  };
}

const latencies = (caption, runs) => ({
  caption,
  head: ['through', 'half of all within', '99 of 100 within', 'ags, half', 'ags, 99 of 100'],
  rows: Object.keys(runs).map((name) => [
    LABELS[name],
    of(p50(runs[name]), 'µs'),
    of(p99(runs[name]), 'µs'),
    ...(PEERS.includes(name)
      ? [times(p50(runs.ags), p50(runs[name])), times(p99(runs.ags), p99(runs[name]))]
      : ['', '']),
  ]),
});

function tunnelsText({ versions, notes, rounds, seconds, others }) {
  return `![Bar charts of the gateway](benchmarks-gateway.svg)

\`ags gateway\` on its own, with its decision log, compared with ${versions.join(', ')}. All have the same list of 52 names and write their log to a file of the same disk; \`srt\` is the HTTP proxy of @anthropic-ai/sandbox-runtime alone, which keeps no log, here also without its address guard and its password, because it would not connect to loopback. The comparison with default settings is made from inside sandboxes, below. Origin and client are small C programs with one thread each; all is on loopback, in a network namespace of its own. Each new connection asks for the origin with CONNECT, sends one request, gets one answer and is closed. Processor time is that of the proxy alone, with all its threads and helpers. ${rounds} rounds of ${seconds} s each; before, other programs used ${others} processor cores.${notes.map((note) => ` ${note}`).join('')}`;
}

function bytes({ down, up }) {
  const columns = (runs, name) => [
    of(megabytes(runs[name]), 'MB/s'),
    name === 'direct' ? '' : of(cpuPerGb(runs[name]), 's'),
    ...(PEERS.includes(name)
      ? [times(megabytes(runs.ags), megabytes(runs[name])), times(cpuPerGb(runs.ags), cpuPerGb(runs[name]))]
      : ['', '']),
  ];
  const table = (caption, runs) => ({
    caption,
    head: ['through', 'rate', 'processor time of a GB', 'ags moves', 'ags needs'],
    rows: Object.keys(runs).map((name) => [LABELS[name], ...columns(runs, name)]),
  });
  return {
    title: 'moving bytes',
    text: 'One connection at full speed. The client reads or writes, the origin writes or reads; all share the same processor cores.',
    tables: [table('Download', down), table('Upload', up)],
    bars: [
      ...over(down, 'tinyproxy', megabytes, { name: 'download, over tinyproxy', atLeast: 2.2 }),
      ...over(down, 'tinyproxy', cpuPerGb, { name: 'processor time of a GB down, over tinyproxy', atMost: 0.45 }),
      ...over(up, 'tinyproxy', megabytes, { name: 'upload, over tinyproxy', atLeast: 1.5 }),
    ],
    chart: {
      title: 'Download through one connection',
      unit: 'MB/s',
      bars: Object.keys(down)
        .filter((name) => name !== 'direct')
        .map((name) => ({
          label: LABELS[name].replaceAll('*', ''),
          values: megabytes(down[name]),
          ours: name.startsWith('ags'),
        })),
    },
  };
}

function events({ events: runs }) {
  const added = difference(p50(runs.ags), p50(runs.direct));
  return {
    title: 'streams',
    text: '200 streams at a time, as models answer: an event of 64 bytes every 25 ms on each. The figures are the delay between sending and receiving an event.',
    tables: [
      {
        head: ['through', 'half of all within', '99 of 100 within', 'half, more than no proxy'],
        rows: Object.keys(runs).map((name) => [
          LABELS[name],
          of(p50(runs[name]), 'µs'),
          of(p99(runs[name]), 'µs'),
          name === 'direct' ? '' : spread(difference(p50(runs[name]), p50(runs.direct)), 'µs'),
        ]),
      },
    ],
    bars: [
      {
        name: 'what it adds to the delay of an event in 200 streams, half of all, ms',
        value: inMs(added),
        atMost: 1,
      },
      ...over(runs, 'srt', p50, { name: 'delay of an event in 200 streams, half of all, over srt', atMost: 1.2 }),
    ],
  };
}

const inMs = (s) => ({ ...s, median: s.median / 1000, p10: s.p10 / 1000, p90: s.p90 / 1000 });

function memory({ memory: runs }) {
  const each = (name) => runs[name].map(({ restKb, heldKb, count }) => (heldKb - restKb) / count);
  const row = (name, label) => [
    label,
    String(runs[name][0].count),
    of(
      runs[name].map(({ restKb }) => restKb / 1024),
      'MB',
    ),
    of(
      runs[name].map(({ heldKb }) => heldKb / 1024),
      'MB',
    ),
    of(each(name), 'kB'),
  ];
  const bar = (name) => ({
    name: `memory of each of ${runs[name][0].count} idle connections, kB`,
    value: summary(each(name)),
    atMost: 25,
  });
  return {
    title: 'memory',
    text: `Connections that are open and idle, each measured in a fresh process; ${runs.ags.length} rounds. Memory is resident memory, helpers included.`,
    tables: [
      {
        head: ['through', 'connections', 'at rest', 'with them', 'each'],
        rows: Object.keys(runs).map((name) => row(name, LABELS[name] ?? LABELS.ags)),
      },
    ],
    bars: [bar('ags'), bar('ags many')],
  };
}

function checks({ hello, rules, inspect, steps, first }) {
  const counts = Object.keys(rules);
  const [few, most] = [counts[0], counts.at(-1)];
  return {
    title: 'what its checks cost',
    text: 'On port 443 the first bytes must be a TLS hello for exactly the requested host; of 517 bytes of plain HTTP to another port the gateway reads only the first. Half of the rules in a list are wildcards; each list runs in its own process. Where a rule names methods or paths, the gateway terminates TLS, and reads, decides, logs and forwards every request over its own TLS connection.',
    tables: [
      {
        caption: 'Processor time of the gateway',
        head: ['', 'each', 'times the one above'],
        rows: [
          ['connection, 517 bytes of plain HTTP', of(cpuEach(hello.plain), 'µs'), ''],
          compared('connection, TLS hello of 517 bytes', cpuEach(hello.checked), cpuEach(hello.plain)),
          ...counts.map((count, i) =>
            i === 0
              ? [`connection, ${count} rules`, of(cpuEach(rules[count]), 'µs'), '']
              : compared(`connection, ${count} rules`, cpuEach(rules[count]), cpuEach(rules[counts[i - 1]])),
          ),
          ['request on a kept connection, passed through', of(cpuEach(inspect['kept, passed']), 'µs'), ''],
          compared(
            'request on a kept connection, looked into',
            cpuEach(inspect['kept, inspected']),
            cpuEach(inspect['kept, passed']),
          ),
          ['fresh TLS connection with a request, passed through', of(cpuEach(inspect['fresh, passed']), 'µs'), ''],
          compared(
            'fresh TLS connection with a request, looked into',
            cpuEach(inspect['fresh, inspected']),
            cpuEach(inspect['fresh, passed']),
          ),
        ],
      },
      {
        caption: 'Single steps',
        head: ['', 'processor time'],
        rows: [
          [
            'certificate for a host',
            of(
              steps.map(({ leafUs }) => leafUs),
              'µs',
            ),
          ],
          [
            'the same, ready for handshakes',
            of(
              steps.map(({ contextUs }) => contextUs),
              'µs',
            ),
          ],
          ...counts.map((count) => [
            `decision with ${count} rules`,
            of(
              steps.map(({ decisionUs }) => decisionUs[count]),
              'µs',
            ),
          ]),
        ],
      },
      ...(first === null ? [] : [firstTable(first)]),
    ],
    bars: [
      {
        name: 'processor time of a connection whose TLS hello is checked, over plain bytes',
        value: ratio(cpuEach(hello.checked), cpuEach(hello.plain)),
        atMost: NOISE,
      },
      {
        name: `processor time of a connection with ${most} rules, over ${few} rules`,
        value: ratio(cpuEach(rules[most]), cpuEach(rules[few])),
        atMost: NOISE,
      },
      {
        name: `decision with ${most} rules, processor time, µs`,
        value: summary(steps.map(({ decisionUs }) => decisionUs[most])),
        atMost: 5,
      },
      {
        name: 'request on a kept connection, looked into, processor time, µs',
        value: summary(cpuEach(inspect['kept, inspected'])),
        atMost: 200,
      },
      {
        name: 'certificate for a host, processor time, ms',
        value: inMs(summary(steps.map(({ leafUs }) => leafUs))),
        atMost: 2,
      },
      ...(first === null
        ? []
        : [
            {
              name: 'first answer in a new sandbox, later than a command that does nothing, ms',
              value: difference(wall(first.asking), wall(first.nothing)),
              atMost: 100,
            },
          ]),
    ],
  };
}

const firstTable = (first) => ({
  caption: 'From the start of `ags exec` to its end',
  head: ['command', ...MEASURES.map(({ what }) => what)],
  rows: [
    ['`true`', ...MEASURES.map(({ get }) => ms(get(first.nothing)))],
    ['a client that asks once through the gateway', ...MEASURES.map(({ get }) => ms(get(first.asking)))],
    ['difference', ...MEASURES.map(({ get }) => spread(difference(get(first.asking), get(first.nothing)), 'ms'))],
  ],
});

const compared = (name, values, above) => [name, of(values, 'µs'), times(values, above)];

/** The expected ratio between two runs of the same variant. */
const NOISE = 1.1;
