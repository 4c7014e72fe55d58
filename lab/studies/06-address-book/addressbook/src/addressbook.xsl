<?xml version="1.0" encoding="UTF-8"?>
<!-- The content of a page of the address book: all entries, those whose name contains a text, or one.
     Entries of all three models have one form; src/html.rs writes the same bytes.
     No element is left empty, since XML would write it as a browser does not read it. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="xml" omit-xml-declaration="yes" encoding="UTF-8" indent="no"/>

  <!-- The address that the address of each entry begins with. -->
  <xsl:param name="base"/>
  <!-- "list", "search" or "entry". -->
  <xsl:param name="view" select="'list'"/>
  <!-- The text of a search, or the entry's id. -->
  <xsl:param name="value"/>

  <xsl:variable name="upper" select="'ABCDEFGHIJKLMNOPQRSTUVWXYZ'"/>
  <xsl:variable name="lower" select="'abcdefghijklmnopqrstuvwxyz'"/>

  <xsl:key name="country" match="/addressbook/countries/country" use="@id"/>
  <xsl:key name="city" match="/addressbook/cities/city" use="@id"/>
  <xsl:key name="organisation" match="/addressbook/organisations/organisation" use="@id"/>
  <xsl:key name="group" match="/addressbook/groups/group" use="@id"/>

  <xsl:template match="/">
    <xsl:choose>
      <xsl:when test="$view = 'entry'">
        <xsl:apply-templates select="addressbook/entry[@id = $value][1]" mode="page"/>
      </xsl:when>
      <xsl:when test="$view = 'search'">
        <xsl:variable name="text" select="translate($value, $upper, $lower)"/>
        <xsl:call-template name="list">
          <xsl:with-param name="entries" select="addressbook/entry[contains(translate(concat((first | name/first)[1], ' ', (last | name/last)[1]), $upper, $lower), $text)]"/>
        </xsl:call-template>
      </xsl:when>
      <xsl:otherwise>
        <xsl:call-template name="list">
          <xsl:with-param name="entries" select="addressbook/entry"/>
        </xsl:call-template>
      </xsl:otherwise>
    </xsl:choose>
  </xsl:template>

  <xsl:template name="list">
    <xsl:param name="entries"/>
    <main>
      <xsl:if test="$entries">
        <ul class="book">
          <xsl:apply-templates select="$entries" mode="item"/>
        </ul>
      </xsl:if>
      <p class="count"><xsl:value-of select="count($entries)"/> found</p>
    </main>
  </xsl:template>

  <xsl:template match="entry" mode="item">
    <li>
      <h2><a href="{$base}/{@id}"><xsl:call-template name="name"/></a></h2>
      <xsl:call-template name="details"/>
    </li>
  </xsl:template>

  <xsl:template match="entry" mode="page">
    <main>
      <article>
        <h2><xsl:call-template name="name"/></h2>
        <xsl:call-template name="details"/>
      </article>
    </main>
  </xsl:template>

  <xsl:template name="name">
    <xsl:value-of select="(first | name/first)[1]"/>
    <xsl:text> </xsl:text>
    <xsl:value-of select="(last | name/last)[1]"/>
  </xsl:template>

  <xsl:template name="details">
    <xsl:apply-templates select="work"/>
    <xsl:if test="street">
      <p class="address">
        <xsl:call-template name="place">
          <xsl:with-param name="street" select="street"/>
          <xsl:with-param name="code" select="code"/>
          <xsl:with-param name="city" select="city"/>
          <xsl:with-param name="country" select="country"/>
        </xsl:call-template>
      </p>
    </xsl:if>
    <xsl:apply-templates select="address"/>
    <xsl:apply-templates select="phone[string()]"/>
    <xsl:apply-templates select="email[string()]"/>
    <xsl:if test="member[string(key('group', @group))]">
      <p class="groups">
        <xsl:for-each select="member[string(key('group', @group))]">
          <xsl:if test="position() &gt; 1">, </xsl:if>
          <xsl:value-of select="key('group', @group)"/>
        </xsl:for-each>
      </p>
    </xsl:if>
    <xsl:if test="string(birthday)">
      <p class="birthday"><span class="kind">born</span><xsl:text> </xsl:text><xsl:value-of select="birthday"/></p>
    </xsl:if>
    <xsl:if test="string(note)">
      <p class="note"><xsl:value-of select="note"/></p>
    </xsl:if>
  </xsl:template>

  <xsl:template match="work">
    <xsl:variable name="organisation" select="key('organisation', @organisation)"/>
    <xsl:variable name="city" select="key('city', $organisation/@city)"/>
    <p class="work"><xsl:value-of select="title"/>, <xsl:value-of select="$organisation/name"/></p>
    <p class="address">
      <span class="kind">work</span>
      <xsl:text> </xsl:text>
      <xsl:call-template name="place">
        <xsl:with-param name="street" select="$organisation/street"/>
        <xsl:with-param name="code" select="$city/code"/>
        <xsl:with-param name="city" select="$city/name"/>
        <xsl:with-param name="country" select="key('country', $city/@country)"/>
      </xsl:call-template>
    </p>
  </xsl:template>

  <xsl:template match="address[@city]">
    <xsl:variable name="city" select="key('city', @city)"/>
    <p class="address">
      <xsl:call-template name="kind"/>
      <xsl:call-template name="place">
        <xsl:with-param name="street" select="street"/>
        <xsl:with-param name="code" select="$city/code"/>
        <xsl:with-param name="city" select="$city/name"/>
        <xsl:with-param name="country" select="key('country', $city/@country)"/>
      </xsl:call-template>
    </p>
  </xsl:template>

  <xsl:template match="address[not(@city)]">
    <p class="address">
      <xsl:call-template name="kind"/>
      <xsl:call-template name="place">
        <xsl:with-param name="street" select="street"/>
        <xsl:with-param name="code" select="code"/>
        <xsl:with-param name="city" select="city"/>
        <xsl:with-param name="country" select="country"/>
      </xsl:call-template>
    </p>
  </xsl:template>

  <xsl:template name="place">
    <xsl:param name="street"/>
    <xsl:param name="code"/>
    <xsl:param name="city"/>
    <xsl:param name="country"/>
    <xsl:value-of select="$street"/>
    <br/>
    <xsl:value-of select="$code"/>
    <xsl:text> </xsl:text>
    <xsl:value-of select="$city"/>
    <xsl:if test="string($country)">
      <xsl:text>, </xsl:text>
      <xsl:value-of select="$country"/>
    </xsl:if>
  </xsl:template>

  <xsl:template match="phone">
    <p><xsl:call-template name="kind"/><a href="tel:{translate(., ' ', '')}"><xsl:value-of select="."/></a></p>
  </xsl:template>

  <xsl:template match="email">
    <p><xsl:call-template name="kind"/><a href="mailto:{.}"><xsl:value-of select="."/></a></p>
  </xsl:template>

  <xsl:template name="kind">
    <xsl:if test="string(@kind)">
      <span class="kind"><xsl:value-of select="@kind"/></span>
      <xsl:text> </xsl:text>
    </xsl:if>
  </xsl:template>
</xsl:stylesheet>
