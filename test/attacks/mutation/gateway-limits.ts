// test/attacks/mutation/gateway-limits.ts: attempts that need a gateway with small limits, short timeouts or a token, or a program inside
// that speaks TLS: too much to ask of a user's own sandbox, so `ags doctor --attack` leaves them out.
import type { Attack } from '../../../src/attack/table/attack.ts';
import { LIMITS } from '../../gateway/fixture.ts';
import type { Setting } from './gateway-stage.ts';
import type { Piece } from './mutated-source.ts';

const perl = String.raw;
const limits = (more: Partial<Record<keyof typeof LIMITS, number>>): Setting => ({
  policy: { limits: { ...LIMITS, ...more } },
});

/** Shorter timeouts than the source has, so that no test waits for minutes. */
const SOONER: readonly Piece[] = [
  ['gateway/intercept/intercept.ts', 'const HEAD_MS = 30_000;', 'const HEAD_MS = 300;'],
  ['gateway/intercept/intercept.ts', 'const IDLE_MS = 300_000;', 'const IDLE_MS = 300;'],
];

export type LimitAttack = Attack & { readonly setting: Setting };

const one = (id: string, setting: Setting, program: string, ...expect: string[]): LimitAttack => ({
  id,
  area: 'network',
  what: '',
  references: [],
  perl: program,
  expect,
  setting,
});

export const LIMIT_ATTACKS: readonly LimitAttack[] = [
  one(
    'limit-connections',
    limits({ connections: 4 }),
    perl`my @held = map { enter() } 1 .. 6; select undef, undef, undef, 0.2; door("CONNECT canary.invalid:443 HTTP/1.1\r\nHost: canary.invalid:443\r\n\r\n")`,
    '503',
  ),
  one(
    'limit-per-second',
    limits({ perSecond: 5 }),
    perl`my $held = grep { knock("CONNECT canary.invalid:443 HTTP/1.1\r\nHost: canary.invalid:443\r\n\r\n") eq '503' } 1 .. 100; line($held > 0 ? 'limited' : 'all came in')`,
    'limited',
  ),
  one(
    'limit-bytes-tunnel',
    limits({ bytesOut: 3000 }),
    perl`line(through($V{ECHO}, 'x' x 10000), 'tunnel'); door("CONNECT canary.invalid:443 HTTP/1.1\r\nHost: canary.invalid:443\r\n\r\n", 'afterwards')`,
    'closed',
    '503',
  ),
  one(
    'limit-bytes-requests',
    limits({ bytesOut: 3000 }),
    perl`door("POST http://$V{ECHO}/ HTTP/1.1\r\nHost: $V{ECHO}\r\nContent-Length: 10000\r\nConnection: close\r\n\r\n" . 'x' x 10000)`,
    '403',
  ),
  one(
    'limit-silence',
    { waits: { firstWordsMs: 200 } },
    perl`door('GET http://', 'half a head'); line(through("inspected.$V{DOMAIN}:443", "\x16\x03"), 'half a greeting')`,
    'closed',
  ),
  one(
    'limit-asked',
    { policy: { mode: 'record', askSeconds: 1 } },
    perl`our $OVER; my $s = enter() or return line(shut()); syswrite $s, "CONNECT canary.invalid:443 HTTP/1.1\r\nHost: canary.invalid:443\r\n\r\n"; my $text = ''; for (1 .. 4) { $text .= hear($s, qr/\r\n\r\n/); last unless $OVER } line(kind($text))`,
    '403',
  ),
  one(
    'limit-asks',
    { policy: { mode: 'record', askSeconds: 60 } },
    perl`my @held = map { my $s = enter(); syswrite $s, "CONNECT a$_.canary.invalid:443 HTTP/1.1\r\nHost: a$_.canary.invalid:443\r\n\r\n"; $s } 1 .. 110; select undef, undef, undef, 0.5; door("CONNECT canary.invalid:443 HTTP/1.1\r\nHost: canary.invalid:443\r\n\r\n")`,
    '403',
  ),
  one(
    'limit-idle',
    { given: SOONER },
    perl`for my $more ('', "GET /ags-attack-door/a HTTP/1.1\r\n") { my $s = enter($V{ENDPOINT}) or return line(shut()); syswrite $s, "GET /ags-attack-door/say/kept HTTP/1.1\r\nHost: 127.0.0.1:3129\r\n\r\n"; hear($s, qr/ok$/); syswrite $s, $more; line(kind(hear($s)), $more eq '' ? 'says nothing more' : 'half a head') }`,
    'closed',
  ),
  one(
    'limit-names',
    { given: [['gateway/front/names.ts', 'const MOST_NAMES = 65_536;', 'const MOST_NAMES = 5;']] },
    perl`my $given = grep { (unpack 'n6', ask("n$_.$V{DOMAIN}") // '')[3] } 1 .. 10; line($given > 5 ? 'all of them' : $given > 0 ? 'limited' : 'none')`,
    'limited',
  ),
  one(
    'limit-lookups',
    { given: [['gateway/dial/resolve.ts', 'const MOST_UNDER_WAY = 512;', 'const MOST_UNDER_WAY = 3;']] },
    perl`our $ANSWER; my $go = sub { "CONNECT silent$_[0].$V{DOMAIN}:$V{LOOPBACK_PORT} HTTP/1.1\r\nHost: silent$_[0].$V{DOMAIN}:$V{LOOPBACK_PORT}\r\n\r\n" }; my @held = map { my $s = enter(); syswrite $s, $go->($_); $s } 1 .. 10; select undef, undef, undef, 0.3; my $got = knock($go->(4)); line($ANSWER =~ /too many lookups/ ? 'limited' : $got)`,
    'limited',
  ),
  one(
    'limit-turned-away',
    {
      ...limits({ connections: 1 }),
      given: [['gateway/connection.ts', 'const MOST_TURNED_AWAY = 64;', 'const MOST_TURNED_AWAY = 2;']],
    },
    perl`my @held = map { enter() } 1 .. 3; select undef, undef, undef, 0.2; door("CONNECT canary.invalid:443 HTTP/1.1\r\nHost: canary.invalid:443\r\n\r\n")`,
    'closed',
  ),
  one(
    'limit-token',
    { isToken: (given) => given === 'right' },
    perl`our $ANSWER; my ($host, $port) = split /:/, $V{ECHO}; my $connect = "CONNECT $V{ECHO} HTTP/1.1\r\nHost: $V{ECHO}\r\n"; works(knock($connect . "Proxy-Authorization: Bearer right\r\n\r\n"), '200', 'the right one'); door($connect . ($_ && "Proxy-Authorization: $_\r\n") . "\r\n", "[$_]") for '', 'Bearer wrong', 'Basic YWdzOndyb25n'; for my $word (qw(right wrong)) { knock("\x05\x01\x02\x01\x03ags" . pack('C/a*', $word) . "\x05\x01\0\x03" . pack('C/a*', $host) . pack('n', $port)); line($ANSWER =~ /^\x05\x02\x01\0\x05\0/ ? ($word eq 'right' ? 'works' : 'let in') : '407', $word) }`,
    'works',
    '407',
  ),
  one(
    'tls-secret-elsewhere',
    {},
    perl`my $token = $ENV{AGS_ATTACK_TOKEN}; my $get = sub { my ($host, $path, $port) = @_; $port //= $V{SECURE}; open my $p, '-|', 'sh', '-c', 'printf %s "$1" | openssl s_client -quiet -proxy "127.0.0.1:$2" -connect "$3:$4" -servername "$3" 2>/dev/null', 'sh', "GET $path HTTP/1.1\r\nHost: $host:$port\r\nAuthorization: Bearer $token\r\nConnection: close\r\n\r\n", $V{LISTENER}, $host, $port or die $!; local $/; my $text = <$p>; $text }; my $own = $get->("secret.$V{DOMAIN}", '/say/body'); works($own =~ /^X-Signed: (in)/m ? $1 : 'no', 'in', 'its own host'); line(leaked($own) ? 'the value' : 'hidden', 'sent back'); my $other = $get->("looked-into.$V{DOMAIN}", '/open/a'); line(index($other, $token) >= 0 ? 'as it was' : 'replaced', 'another host'); line(index($get->("secret.$V{DOMAIN}", '/open/a', (split /:/, $V{ECHO})[1]), $token) >= 0 ? 'as it was' : 'replaced', 'another port'); line($get->("looked-into.$V{DOMAIN}", '/closed') =~ m{^HTTP/1.1 403 } ? 'refused' : 'let through', 'another path')`,
    'works',
    'hidden',
    'as it was',
    'refused',
  ),
];
