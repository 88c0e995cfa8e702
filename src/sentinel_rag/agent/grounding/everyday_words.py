"""Words that may stand with a capital or a digit in an answer and name nothing of the data: of the calendar, of
Microsoft's products, of this trade and of English. An invented name is found because it is not among them.
"""

from __future__ import annotations

_WORDS = """
24/7 2fa 32-bit 365 64-bit a aad access account accounts action actions active ad additionally address addresses
advanced affected after alert alerts all already also always am an analysis analytics and answer any anyone api apps
apr april apt are as assessment assigned at att att&ck attack aug august azure background base64 bash be because
before benign benignpositive block both bottom bst busiest but by c2 can cdt center cest cet check cisa ck
classification cli closed cloud cmd collection column columns command comment comments compromised conclusion
confirm consider contain control corrected could count counts cpu created credential critical cst csv current cve
cvss date dates day days dec december defence defender defense description destination detail details development
device devices dhcp directory discovery dismissed dlp dns domain domains during each earliest edr edt either email
emails endpoint endpoints english entities entity entra escalation est evasion event events every everything
evidence excel exchange execution exfiltration false falsepositive faq feb february few fewer field fields file
files finding findings first followed for fri friday from ftp furthermore german gmt google guid handover hash
hashes he here high host hosts hour hours how however html http http/2 https hypothesis i iam icmp id identity ids
if impact in incident incidents indicator indicators info information informational initial inprogress insights
internet intune investigate investigation involved ioc iocs iot ip ips ipv4 ipv6 is iso isolate ist it its jan
january javascript json jst jul july jun june just kerberos key kind kql last lateral latest ldap least less let
linux log log4j logs low m365 machine macos mail mailbox main many mar march may md5 mdt me medium mfa microsoft
might minute minutes mitre modified mon monday monitor month more most movement mst must name neither never new
newest next nist no nobody none not note notes nothing nov november now ntlm number o365 oauth oauth2 observed oct
october of office office365 often ok old oldest on one onedrive only open opened or os ot our out outlook over
overall overview owner pdf pdt peak peaked persistence pid please pm portal positive possible potential powershell
previous privilege process processes product progress protection provider pst purview python queries query raised
rbac rdp reason recent recommendation recommendations recommended reconnaissance related report reported reset
resolved resource response result results review row rows rule rules saml sat saturday second security securityalert
securityevent securityincident see seen sentinel sep sept september server servers several severity sha sha-1
sha-256 sha1 sha256 sha512 shall sharepoint she shift should sid siem sign-in sign-ins signin signinlogs since smb
so soar soc some someone source ssh ssl sso status step steps still suggested summary sun sunday table tables tactic
tactics target targeted tcp teams technique techniques template templates than that the their then there therefore
these they third this those threat three thu thursday time timeline times title tls to today tomorrow top total
triage true truepositive ttp ttps tue tuesday two type types udp ueba unassigned under undetermined unknown until
updated upn uri url urls user users usually utc utf-8 utf8 value values verify vm vpn was we web wed wednesday week
were what when where whereas which while who why win32 windows with word workspace workspaces workstation would x64
x86 xdr year yes yesterday yet you your europe america american united states kingdom asia africa european
"""

KNOWN_WORDS = frozenset(_WORDS.split())
"""In lower case."""
