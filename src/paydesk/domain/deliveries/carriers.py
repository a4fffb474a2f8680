"""Carriers whose tracking link follows from the tracking id, by the names that shops give them
(interface.md §8.7).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

NAMES = (
    "Aramex", "Australia Post", "Canada Post", "Colissimo", "DHL", "DHL Express", "DHL Paket", "DPD", "Evri", "FedEx",
    "GLS", "Hermes", "InPost", "La Poste", "Parcelforce", "Purolator", "Royal Mail", "TNT", "UPS", "USPS",
)  # fmt: skip
"""Names of carriers to choose from: each has a tracking link."""

_LINKS: Mapping[str, str] = {
    "fedex": "https://www.fedex.com/fedextrack/?trknbr={}",
    "ups": "https://www.ups.com/track?tracknum={}",
    "dhl": "https://www.dhl.com/global-en/home/tracking.html?tracking-id={}",
    "dhlde": "https://www.dhl.de/de/privatkunden/dhl-sendungsverfolgung.html?piececode={}",
    "usps": "https://tools.usps.com/go/TrackConfirmAction?tLabels={}",
    "dpd": "https://tracking.dpd.de/status/en_US/parcel/{}",
    "gls": "https://gls-group.com/GROUP/en/parcel-tracking?match={}",
    "tnt": "https://www.tnt.com/express/en_us/site/shipping-tools/tracking.html?searchType=con&cons={}",
    "royalmail": "https://www.royalmail.com/track-your-item#/tracking-results/{}",
    "parcelforce": "https://www.parcelforce.com/track-trace?trackNumber={}",
    "hermes": "https://www.myhermes.de/empfangen/sendungsverfolgung/sendungsinformation#{}",
    "evri": "https://www.evri.com/track/parcel/{}",
    "laposte": "https://www.laposte.fr/outils/suivre-vos-envois?code={}",
    "colissimo": "https://www.laposte.fr/outils/suivre-vos-envois?code={}",
    "canadapost": "https://www.canadapost-postescanada.ca/track-reperage/en#/search?searchFor={}",
    "australiapost": "https://auspost.com.au/mypost/track/details/{}",
    "purolator": "https://www.purolator.com/en/shipping/tracker?pins={}",
    "inpost": "https://inpost.pl/sledzenie-przesylek?number={}",
    "aramex": "https://www.aramex.com/track/results?ShipmentNumber={}",
}

_ALSO: Mapping[str, str] = {
    "federalexpress": "fedex",
    "unitedparcelservice": "ups",
    "unitedstatespostalservice": "usps",
    "uspostalservice": "usps",
    "dhlexpress": "dhl",
    "dhlpaket": "dhlde",
    "deutschepost": "dhlde",
    "tntexpress": "tnt",
    "auspost": "australiapost",
    "glseurope": "gls",
    "dpdgroup": "dpd",
}

_NOT_A_LETTER = re.compile(r"[^a-z0-9]")


def tracking_link(carrier: str, tracking_id: str) -> str:
    """The page on which a carrier shows where a parcel is, "" for a carrier that is not known.

    The carrier may be written in any case, with or without spaces and dots: "Royal Mail",
    "U.P.S.", "fedex".
    """
    name = _NOT_A_LETTER.sub("", carrier.lower())
    pattern = _LINKS.get(_ALSO.get(name, name), "")
    return pattern.format(quote(tracking_id, safe="")) if pattern else ""
